#include "options.hpp"

namespace ddp::app {

nlohmann::ordered_json TrainOptions::to_json() const {
  nlohmann::ordered_json json;
  if (data.empty()) {
    json["in"] = in;
    json["out"] = out;
  } else {
    json["data"] = data;
    json["target"] = columns.targets;
    json["features"] = columns.features;
    json["standardize"] = standardize;
    json["shuffle"] = shuffle;
    json["drop-last"] = drop_last;
  }
  json["bias"] = bias;
  json["init"] = init;
  json["loss"] = "mse";
  json["optimizer"] = "sgd";
  json["lr"] = sgd.lr;
  json["momentum"] = sgd.momentum;
  json["dampening"] = sgd.dampening;
  json["nesterov"] = sgd.nesterov;
  json["weight-decay"] = sgd.weight_decay;
  if (batch_size) json["batch-size"] = *batch_size;
  if (global_batch) json["global-batch"] = *global_batch == 0 ? "full" : std::to_string(*global_batch);
  if (epochs) json["epochs"] = *epochs;
  if (steps) json["steps"] = *steps;
  json["seed"] = seed;
  json["average"] = averaging == Averaging::rows ? "rows" : "ranks";
  json["precision"] = "fp32";
  json["timeout"] = timeout_s;
  json["evaluate-train"] = evaluate_train;
  if (!save.empty()) json["save"] = save;
  return json;
}

}  // namespace ddp::app
