#include "plan.hpp"

#include <fmt/format.h>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/base/error.hpp>
#include "console.hpp"

namespace ddp::app {

Plan make_plan(const World& world, const TrainOptions& options, const std::optional<TrainingData>& data) {
  Plan plan;
  const std::int64_t ranks = world.size();
  if (data) {
    const std::int64_t rows = data->rows.rows;
    plan.global_batch = options.batch_size ? checked_product(std::min(*options.batch_size, rows), ranks, "--batch-size")
                                           : options.global_batch.value_or(256);
    const bool all_rows = options.optimizer == "lbfgs";
    if (all_rows || plan.global_batch == 0 || plan.global_batch > rows) plan.global_batch = rows;
    plan.epochs = options.epochs.value_or(options.steps ? unlimited : all_rows ? 1000 : 1);
    plan.max_steps = options.steps.value_or(unlimited);
    return plan;
  }
  plan.global_batch = options.global_batch
                          ? *options.global_batch
                          : checked_product(options.batch_size.value_or(20), ranks, "--batch-size over all ranks");
  if (plan.global_batch % ranks != 0) {
    throw UseError(fmt::format("--global-batch {} cannot be shared out evenly over {} ranks, as synthetic data must be",
                               plan.global_batch, ranks));
  }
  plan.max_steps = std::min(options.steps.value_or(unlimited), options.epochs.value_or(options.steps ? unlimited : 1));
  plan.steps_per_epoch = plan.max_steps;
  return plan;
}

std::unique_ptr<BatchSource> make_source(const World& world, Device& device, const TrainOptions& options,
                                         const std::optional<TrainingData>& data, const LinearShape& shape,
                                         const std::vector<float>& class_weight, const TorchGenerator& generator,
                                         Plan& plan) {
  if (!data) {
    return make_synthetic_batches(device, generator, shape, plan.global_batch / world.size(),
                                  checked_product(plan.steps_per_epoch, options.accumulate, "--steps and --accumulate"),
                                  options.accumulate, world.size());
  }
  BatchOptions batches;
  batches.accumulate = options.accumulate;
  batches.averaging = options.averaging;
  batches.class_weight = class_weight;
  SamplerOptions& sampler = batches.sampler;
  sampler.rank = world.rank();
  sampler.ranks = world.size();
  sampler.global_batch = plan.global_batch;
  sampler.shuffle = options.shuffle;
  sampler.seed = options.seed;
  sampler.drop_last = options.drop_last;
  sampler.by_shards = options.deterministic;
  auto source = make_dataset_batches(device, data->rows, batches);
  plan.steps_per_epoch = source->steps_per_epoch();
  return source;
}

TrainerOptions make_trainer_options(const TrainOptions& options, const Plan& plan, bool synthetic) {
  TrainerOptions trainer;
  trainer.epochs = plan.epochs;
  trainer.max_steps = plan.max_steps;
  if (options.schedule.kind != LrSchedule::Kind::constant) {
    LrSchedule schedule = options.schedule;
    if (schedule.steps == 0) schedule.steps = plan.total_steps();
    trainer.lr = [schedule](double lr, std::int64_t done) { return schedule.at(lr, done); };
  }
  trainer.tolerance = options.tolerance.value_or(-1);
  const std::int64_t steps = synthetic ? plan.max_steps : options.steps.value_or(unlimited);
  trainer.log_every = options.log_every.value_or(steps <= 1000 ? 1 : synthetic ? Console::stride(steps) : 0);
  return trainer;
}

}  // namespace ddp::app
