#include "options.hpp"

#include <array>

#include "format_options.hpp"

namespace ddp::app {
namespace {

nlohmann::ordered_json or_null(const std::optional<std::int64_t>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json or_null(const std::string& path) {
  return path.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(path);
}

void add_table(nlohmann::ordered_json& json, const TrainOptions& options) {
  static constexpr std::array headers{"auto", "yes", "no"};
  json["data"] = options.data;
  json["target"] = options.columns.targets;
  json["features"] = options.columns.features;
  json["header"] = headers.at(static_cast<std::size_t>(options.text.header));
  json["delimiter"] = nullptr;  // by extension
  if (options.text.delimiter != 0) json["delimiter"] = std::string(1, options.text.delimiter);
  json["decimal"] = std::string(1, options.text.decimal);
  json["format"] = nullptr;  // by extension
  for (const auto& [name, format] : formats()) {
    if (format == options.file.format) json["format"] = name;
  }
  json["x"] = options.file.keys.x;
  json["y"] = options.file.keys.y;
  json["labels"] = or_null(options.file.targets_file);
  json["zero-based"] = options.file.zero_based;
  json["standardize"] = options.standardize;
  json["no-shuffle"] = !options.shuffle;
  json["drop-last"] = options.drop_last;
}

}  // namespace

nlohmann::ordered_json TrainOptions::to_json() const {
  nlohmann::ordered_json json;
  if (data.empty()) {
    json["in"] = in;
    json["out"] = out;
  } else {
    add_table(json, *this);
  }
  json["no-bias"] = !bias;
  json["init"] = init;
  json["loss"] = loss;
  json["optimizer"] = optimizer;
  json["lr"] = sgd.lr;
  json["momentum"] = sgd.momentum;
  json["dampening"] = sgd.dampening;
  json["nesterov"] = sgd.nesterov;
  json["weight-decay"] = sgd.weight_decay;
  json["batch-size"] = or_null(batch_size);
  json["global-batch"] = or_null(global_batch);
  json["epochs"] = or_null(epochs);
  json["steps"] = or_null(steps);
  json["seed"] = seed;
  json["average"] = averaging == Averaging::rows ? "rows" : "ranks";
  json["precision"] = precision;
  json["timeout"] = timeout_s;
  json["save"] = or_null(save);
  json["metrics"] = or_null(metrics);
  json["log-every"] = or_null(log_every);
  json["evaluate-train"] = evaluate_train;
  json["quiet"] = quiet;
  return json;
}

}  // namespace ddp::app
