#include "sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <linear_ddp/base/error.hpp>
#include "scores.hpp"

namespace ddp::app {
namespace {

void set(TrainOptions& options, const std::string& name, double value) {
  if (name == "lr") options.lr = value;
  if (name == "weight-decay") options.weight_decay = value;
  if (name == "l2") options.gradient.l2 = value;
}

double get(const TrainOptions& options, const std::string& name) {
  return name == "lr" ? options.lr : name == "l2" ? options.gradient.l2 : *options.weight_decay;
}

double loss_of(const HeadResult& result) {
  return result.validation ? result.validation->loss : result.train_loss;
}

/// The numbers of the heads, the best first, and those whose loss is not finite last.
std::vector<std::size_t> ranking(const std::vector<HeadResult>& results) {
  std::vector<std::size_t> order(results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const double of_a = loss_of(results[a]), of_b = loss_of(results[b]);
    return std::isfinite(of_a) && (!std::isfinite(of_b) || of_a < of_b);
  });
  return order;
}

}  // namespace

std::vector<TrainOptions> heads_of(const TrainOptions& options) {
  std::vector<TrainOptions> heads{options};
  for (const auto& [name, values] : options.sweep) {
    std::vector<TrainOptions> more;
    for (const TrainOptions& head : heads) {
      for (const double value : values) set(more.emplace_back(head), name, value);
    }
    heads = std::move(more);
  }
  return heads;
}

Model repeated(Device& device, const Model& one, std::size_t heads) {
  LinearShape shape = one.shape();
  shape.heads = static_cast<std::int64_t>(heads);
  Model model(device, shape, one.loss());
  const std::vector<float> parameters = one.download_head(0);
  for (std::int64_t head = 0; head < shape.heads; ++head) model.upload_head(head, parameters);
  return model;
}

std::size_t report_sweep(const TrainOptions& options, const std::vector<TrainOptions>& heads,
                         const std::vector<HeadResult>& results, Console& console) {
  const std::string score = score_name(options.task());
  const auto order = ranking(results);
  const bool validates = results[0].validation.has_value();
  std::string title;
  for (const auto& [name, values] : options.sweep) title += fmt::format("{:<13}", name);
  console.line("sweep", title + (validates ? fmt::format("{:<13}{:<17}{}", "train loss", "validation loss", score)
                                           : "train loss"));
  for (std::size_t place = 0; place < order.size(); ++place) {
    const TrainOptions& head = heads[order[place]];
    const HeadResult& result = results[order[place]];
    nlohmann::ordered_json event{{"event", "head"}, {"head", order[place]}, {"rank", place + 1}};
    std::string text;
    for (const auto& [name, values] : options.sweep) {
      text += fmt::format("{:<13.6g}", get(head, name));
      event[name] = get(head, name);
    }
    text += fmt::format("{:<13.7g}", result.train_loss);
    event["train_loss"] = result.train_loss;
    if (result.validation) {
      text += fmt::format("{:<17.7g}{:.7g}", result.validation->loss, result.validation->score);
      event["valid_loss"] = result.validation->loss;
      event["valid_" + score] = result.validation->score;
      event["best_epoch"] = nullptr;
      if (result.best_epoch >= 0) event["best_epoch"] = result.best_epoch;
    }
    console.line("", text + (place == 0 ? "  best" : std::isfinite(loss_of(result)) ? "" : "  diverged"));
    console.event(event);
  }
  if (!std::isfinite(loss_of(results[order[0]]))) {
    throw AgreedError(Status::failed,
                      "no head of --sweep has a finite loss: training diverged; use smaller learning "
                      "rates, and --standardize when features differ in scale");
  }
  return order[0];
}

}  // namespace ddp::app
