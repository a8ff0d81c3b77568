#include "objective.hpp"

#include <fmt/format.h>

#include <map>
#include <span>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/optim/adam.hpp>
#include <linear_ddp/optim/sgd.hpp>

namespace ddp::app {
namespace {

/// One for each class; none when all count the same. Balanced as in scikit-learn: rows / (classes · rows of the class).
std::vector<double> class_weights(const TrainOptions& options, const Dataset& data) {
  const std::size_t classes = data.classes.size();
  std::vector<double> weights = options.class_weights;
  if (options.balanced_classes) {
    std::vector<std::int64_t> rows(classes, 0);
    for (std::int64_t row = 0; row < data.rows; ++row) {
      ++rows[static_cast<std::size_t>(data.y[static_cast<std::size_t>(row)])];
    }
    for (std::size_t c = 0; c < classes; ++c) {
      const std::int64_t own = rows[c];
      if (own == 0) {
        throw UseError(
            fmt::format("--class-weights balanced: the class '{:.40}' has no row to train on", data.classes[c]));
      }
      weights.push_back(static_cast<double>(data.rows) / static_cast<double>(classes) / static_cast<double>(own));
    }
  }
  if (!weights.empty() && weights.size() != classes) {
    throw UseError(fmt::format("--class-weights has {} weights, but there are {} classes: {}", weights.size(), classes,
                               excerpt(std::span(data.classes))));
  }
  return weights;
}

/// In the loss; in scores rows count as before.
void weigh_classes(Dataset& data, const std::vector<float>& of_class) {
  std::vector<float> weights(static_cast<std::size_t>(data.rows));
  for (std::size_t row = 0; row < weights.size(); ++row) {
    weights[row] = of_class[static_cast<std::size_t>(data.y[row])] * (data.weights.empty() ? 1.0F : data.weights[row]);
  }
  data.score_weights = std::exchange(data.weights, SharedArray(std::move(weights)));
}

}  // namespace

LossKind loss_kind(const TrainOptions& options) {
  static const std::map<std::string, LossKind> kinds{{"mse", LossKind::mse},
                                                     {"huber", LossKind::huber},
                                                     {"bce", LossKind::bce_with_logits},
                                                     {"cross-entropy", LossKind::cross_entropy}};
  return kinds.at(options.loss());
}

TableLoss make_table_loss(const TrainOptions& options, const Dataset& data) {
  TableLoss loss{loss_kind(options), options.label_smoothing};
  if (options.task() != Task::regression) loss.class_weight = class_weights(options, data);
  return loss;
}

LossOptions make_loss(const TrainOptions& options, TrainingData* data) {
  LossOptions loss{.kind = loss_kind(options), .label_smoothing = options.label_smoothing};
  if (options.task() == Task::regression) return loss;
  Dataset& rows = data->rows;
  const auto exact = class_weights(options, rows);
  const std::vector<float> of_class(exact.begin(), exact.end());
  if (loss.kind == LossKind::cross_entropy) {
    loss.class_weight = of_class;
  } else if (!of_class.empty()) {
    weigh_classes(rows, of_class);
    if (data->valid) weigh_classes(*data->valid, of_class);
  }
  return loss;
}

double l2_of(const TrainOptions& options, double weight, std::int64_t outputs) {
  if (options.c) return 1 / (*options.c * weight);
  if (options.alpha) return 2 * *options.alpha / (weight * static_cast<double>(outputs));
  return options.gradient.l2;
}

double total_weight(const Dataset& rows, const LossOptions& loss) {
  double sum = 0;
  for (std::size_t row = 0; std::cmp_less(row, rows.rows); ++row) {
    const double of_class =
        loss.class_weight.empty() ? 1.0 : double{loss.class_weight[static_cast<std::size_t>(rows.y[row])]};
    sum += of_class * (rows.weights.empty() ? 1.0 : double{rows.weights[row]});
  }
  return sum;
}

std::unique_ptr<Optimizer> make_optimizer(Device& device, Model& model, const TrainOptions& options, double l2,
                                          std::int64_t head, const std::optional<OptimizerShard>& shard) {
  GradientOptions gradient = options.gradient;
  gradient.shard = shard;
  gradient.l2 = l2;
  if (options.optimizer == "sgd") {
    SgdOptions sgd = options.sgd;
    sgd.lr = options.lr;
    sgd.weight_decay = options.weight_decay.value_or(0);
    return std::make_unique<Sgd>(device, model, sgd, gradient, head);
  }
  AdamOptions adam = options.adam;
  adam.lr = options.lr;
  adam.decoupled = options.optimizer == "adamw";
  adam.weight_decay = options.weight_decay.value_or(adam.decoupled ? 0.01 : 0);
  return std::make_unique<Adam>(device, model, adam, gradient, head);
}

}  // namespace ddp::app
