#pragma once

#include <memory>

#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/optim/optimizer.hpp>
#include <linear_ddp/training/table_objective.hpp>
#include "training_data.hpp"

namespace ddp::app {

/// Of --loss.
[[nodiscard]] LossKind loss_kind(const TrainOptions& options);

/// What is minimised. Weights of classes that the loss does not have itself become the rows' weights.
/// Throws UseError when they are not one for each class.
[[nodiscard]] LossOptions make_loss(const TrainOptions& options, TrainingData* data);

/// The same of a table's own numbers.
[[nodiscard]] TableLoss make_table_loss(const TrainOptions& options, const Dataset& data);

/// --l2, or what scikit-learn's --C or --alpha come to, which are beside sums over the rows and not beside their mean.
/// `weight` is that of all rows together.
[[nodiscard]] double l2_of(const TrainOptions& options, double weight, std::int64_t outputs);

/// Of all rows, as the loss has them.
[[nodiscard]] double total_weight(const Dataset& rows, const LossOptions& loss);

/// Of the model's head of that number, or of this rank's shard.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(Device& device, Model& model, const TrainOptions& options,
                                                        double l2, std::int64_t head,
                                                        const std::optional<OptimizerShard>& shard);

}  // namespace ddp::app
