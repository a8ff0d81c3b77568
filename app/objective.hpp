#pragma once

#include <memory>

#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/optim/optimizer.hpp>
#include "training_data.hpp"

namespace ddp::app {

/// What is minimised. Weights of classes that the loss does not have itself become the rows' weights.
/// Throws UseError when they are not one for each class.
[[nodiscard]] LossOptions make_loss(const TrainOptions& options, TrainingData* data);

[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(Device& device, Model& model, const TrainOptions& options);

}  // namespace ddp::app
