#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include <linear_ddp/data/batch_source.hpp>
#include <linear_ddp/training/trainer.hpp>
#include "training_data.hpp"

namespace ddp::app {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

/// How long to train, and on how much at once.
struct Plan {
  std::int64_t global_batch = 0, steps_per_epoch = 1, epochs = 1, max_steps = 0;
  [[nodiscard]] std::int64_t total_steps() const {
    return epochs > max_steps / steps_per_epoch ? max_steps : std::min(max_steps, epochs * steps_per_epoch);
  }
  [[nodiscard]] std::int64_t total_epochs() const {
    return std::min(epochs, (total_steps() + steps_per_epoch - 1) / steps_per_epoch);
  }
};

/// Throws UseError when the ranks cannot share the rows of a step as they must.
[[nodiscard]] Plan make_plan(const World& world, const TrainOptions& options, const std::optional<TrainingData>& data);

/// Fills in how many steps an epoch has.
[[nodiscard]] std::unique_ptr<BatchSource> make_source(const World& world, Device& device, const TrainOptions& options,
                                                       const std::optional<TrainingData>& data,
                                                       const LinearShape& shape, const std::vector<float>& class_weight,
                                                       const TorchGenerator& generator, Plan& plan);

[[nodiscard]] TrainerOptions make_trainer_options(const TrainOptions& options, const Plan& plan, bool synthetic);

}  // namespace ddp::app
