#include "options.hpp"

#include <array>
#include <charconv>

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
  static constexpr std::array policies{"error", "drop", "mean"};
  json["data"] = options.data;
  json["target"] = options.columns.targets;
  json["features"] = options.columns.features;
  json["exclude"] = options.columns.excluded;
  json["weights"] = or_null(options.columns.weights);
  json["missing"] = policies.at(static_cast<std::size_t>(options.columns.missing));
  json["task"] = name_of(options.task());
  if (options.task() != Task::regression) {
    json["class-weights"] = nullptr;
    if (options.balanced_classes) json["class-weights"] = "balanced";
    if (!options.class_weights.empty()) json["class-weights"] = options.class_weights;
  }
  if (options.loss() == "cross-entropy") json["label-smoothing"] = options.label_smoothing;
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
  json["stream"] = options.residence == Residence::files;
  json["valid"] = or_null(options.valid);
  json["patience"] = or_null(options.patience);
  json["save-best"] = options.save_best;
  json["tolerance"] = nullptr;
  if (options.tolerance) json["tolerance"] = *options.tolerance;
  json["standardize"] = options.standardize;
  json["no-shuffle"] = !options.shuffle;
  json["drop-last"] = options.drop_last;
}

void add_optimizer(nlohmann::ordered_json& json, const TrainOptions& options) {
  json["optimizer"] = options.optimizer;
  if (options.c) json["C"] = *options.c;
  if (options.alpha) json["alpha"] = *options.alpha;
  if (!options.l2_path.empty()) {
    json["l2-path"] = options.l2_path;
    json["folds"] = or_null(options.folds);
    json["one-standard-error"] = options.one_standard_error;
  }
  if (options.optimizer == "exact" || options.optimizer == "lbfgs") {
    json["l2"] = options.gradient.l2;
    json["summary"] = options.summary;
    return;
  }
  json["lr"] = options.lr;
  if (!options.sweep.empty()) json["sweep"] = nlohmann::ordered_json::object();
  for (const auto& [name, values] : options.sweep) json["sweep"][name] = values;
  json["schedule"] = options.schedule_text;
  if (options.optimizer == "sgd") {
    json["momentum"] = options.sgd.momentum;
    json["dampening"] = options.sgd.dampening;
    json["nesterov"] = options.sgd.nesterov;
  } else {
    json["betas"] = {options.adam.beta1, options.adam.beta2};
    json["eps"] = options.adam.eps;
    json["amsgrad"] = options.adam.amsgrad;
  }
  json["weight-decay"] = options.weight_decay.value_or(options.optimizer == "adamw" ? 0.01 : 0.0);
  json["l2"] = options.gradient.l2;
  json["clip-grad-norm"] = nullptr;
  if (options.gradient.clip_grad_norm) json["clip-grad-norm"] = *options.gradient.clip_grad_norm;
  json["accumulate"] = options.accumulate;
}

}  // namespace

Task TrainOptions::task() const {
  if (given_task) return *given_task;
  return given_loss == "bce" ? Task::binary : given_loss == "cross-entropy" ? Task::multiclass : Task::regression;
}

std::string TrainOptions::loss() const {
  if (!given_loss.empty()) return given_loss;
  return given_task == Task::binary ? "bce" : given_task == Task::multiclass ? "cross-entropy" : "mse";
}

std::optional<double> TrainOptions::valid_fraction() const {
  double value = 0;
  const auto [end, error] = std::from_chars(valid.data(), valid.data() + valid.size(), value);
  return error == std::errc{} && end == valid.data() + valid.size() ? std::optional(value) : std::nullopt;
}

nlohmann::ordered_json TrainOptions::to_json() const {
  nlohmann::ordered_json json;
  if (data.empty()) {
    json["in"] = in;
    json["out"] = out;
  } else {
    add_table(json, *this);
  }
  json["hidden"] = hidden;
  if (!hidden.empty()) json["activation"] = name_of(activation);
  json["no-bias"] = !bias;
  json["init"] = init;
  json["loss"] = loss();
  add_optimizer(json, *this);
  json["batch-size"] = or_null(batch_size);
  json["global-batch"] = or_null(global_batch);
  json["epochs"] = or_null(epochs);
  json["steps"] = or_null(steps);
  json["seed"] = seed;
  json["deterministic"] = deterministic;
  json["zero"] = zero;
  json["average"] = averaging == Averaging::rows ? "rows" : "ranks";
  json["bucket-cap-mb"] = buckets.cap_mb;
  json["first-bucket-mb"] = buckets.first_mb;
  json["compress"] = compression.text;
  json["precision"] = precision;
  json["timeout"] = timeout_s;
  json["save"] = or_null(save);
  json["checkpoint"] = or_null(checkpoint.folder);
  if (!checkpoint.folder.empty()) {
    json["checkpoint-every"] = or_null(checkpoint.every_steps);
    if (checkpoint.every_s) json["checkpoint-every"] = std::to_string(*checkpoint.every_s) + "s";
    json["keep"] = checkpoint.keep;
    json["resume"] = checkpoint.resume;
  }
  json["metrics"] = or_null(metrics);
  json["log-every"] = or_null(log_every);
  json["evaluate-train"] = evaluate_train;
  json["quiet"] = quiet;
  return json;
}

}  // namespace ddp::app
