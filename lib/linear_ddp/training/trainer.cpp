#include <linear_ddp/training/trainer.hpp>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

double mean_loss(const Buffer<double>& weighted_sum, double weight) {
  double sum = 0;
  weighted_sum.download({&sum, 1});
  return sum / weight;
}

}  // namespace

Trainer::Trainer(Device& device, DistributedDataParallel& replica, Optimizer& optimizer, BatchSource& source,
                 TrainingObserver& observer)
    : device_(device),
      replica_(replica),
      optimizer_(optimizer),
      source_(source),
      observer_(observer),
      epoch_sum_(device, 1) {}

float Trainer::checked_loss(std::int64_t step) {
  const float loss = replica_.loss();
  // The all-reduce gave every rank the same value, so every rank throws.
  if (!std::isfinite(loss)) {
    throw AgreedError(Status::failed,
                      fmt::format("the loss is {} at step {}: training diverged; use a smaller --lr, and "
                                  "--standardize when features differ in scale",
                                  loss, step));
  }
  return loss;
}

void Trainer::run_batch(const Step& step) {
  // A sum of weights differs from step to step: it is not for a recording.
  const bool recorded_sum = step.batch.row_weight == nullptr;
  const auto add_loss = [this, weight = step.weight] {
    device_.accumulate(replica_.loss_on_device(), weight, epoch_sum_.data());
  };
  const auto work = [this, step, recorded_sum, add_loss] {
    replica_.backward(step.batch, step.divisor, step.part);
    if (!step.part.last) return;
    if (recorded_sum) add_loss();
    optimizer_.update();
  };
  // The first of a kind runs as it is: it makes plans and connections, and the first step of all differs. The second is
  // recorded.
  auto& [runs, recording] =
      recordings_[{step.batch.x, step.global_rows, step.update_rows, step.part.first, step.part.last}];
  if (runs == 1) recording = device_.record(work);
  if (recording)
    recording->replay();
  else
    work();
  ++runs;
  if (step.part.last && !recorded_sum) add_loss();
}

Step Trainer::run_step(std::int64_t epoch, std::int64_t batch) {
  optimizer_.prepare();
  for (;; ++batch) {
    const Step step = source_.load(epoch, batch);
    const bool ends_epoch = batch + 1 == source_.batches_per_epoch();
    const bool is_last = step.part.last && (steps_left_ == 1 || (ends_epoch && epochs_left_ == 1));
    const std::int64_t next_epoch = ends_epoch ? epoch + 1 : epoch, next_batch = ends_epoch ? 0 : batch + 1;
    if (!is_last) source_.read_ahead(next_epoch, next_batch);
    run_batch(step);
    if (!is_last) source_.prepare(next_epoch, next_batch);
    if (step.part.last) return step;
  }
}

bool Trainer::report(TrainingObserver::EpochReport report, const TrainerOptions& options) {
  report.validation = validation_;
  observer_.on_epoch(report);
  const double before = std::exchange(last_loss_, report.train_loss);
  return options.tolerance >= 0 &&
         std::abs(before - report.train_loss) <= options.tolerance * std::abs(before);  // false for the first: NaN
}

TrainingResult Trainer::run(const TrainerOptions& options) {
  const bool cheap_loss = device_.memory_is_host();
  const bool all_rows = source_.one_step_over_all_rows();
  TrainingResult result;
  double last_lr = optimizer_.lr();
  bool stops = false;
  steps_left_ = options.max_steps;
  last_loss_ = std::numeric_limits<double>::quiet_NaN();

  for (std::int64_t epoch = 0; epoch < options.epochs && steps_left_ > 0 && !stops; ++epoch) {
    epochs_left_ = options.epochs - epoch;
    double epoch_weight = 0;
    epoch_sum_.upload(std::array{0.0});
    for (std::int64_t i = 0; i < source_.steps_per_epoch() && steps_left_ > 0; ++i) {
      if (options.lr) optimizer_.set_lr(options.lr(result.steps));
      const Step step = run_step(epoch, i * source_.accumulate());
      --steps_left_;
      ++result.steps;
      result.rows += step.update_rows;
      epoch_weight += step.weight;
      // A step over all rows evaluates the parameters that the epoch before left: its report costs no pass of its own.
      const bool reports_epoch = all_rows && epoch > 0;
      const bool reports_step = options.log_every > 0 && result.steps % options.log_every == 0;
      const float loss = cheap_loss || reports_epoch || reports_step ? checked_loss(result.steps) : 0;
      if (reports_epoch) {
        stops = report({epoch - 1, result.steps - 1, last_lr, static_cast<double>(loss), {}}, options);
      }
      if (reports_step) observer_.on_step({result.steps, epoch, loss, optimizer_.lr(), step.update_rows});
      last_lr = optimizer_.lr();
    }
    checked_loss(result.steps);
    result.epochs = epoch + 1;
    if (options.validate) validation_ = options.validate(epoch);
    stops = stops || (validation_ && validation_->stops);
    if (all_rows) continue;
    result.last_epoch_loss = options.evaluate ? options.evaluate() : mean_loss(epoch_sum_, epoch_weight);
    stops = report({epoch, result.steps, last_lr, result.last_epoch_loss, {}}, options) || stops;
  }
  if (all_rows && result.steps > 0) {
    if (!options.evaluate) {
      const Step step = source_.load(result.epochs, 0);
      replica_.backward(step.batch, step.divisor);
    }
    result.last_epoch_loss = options.evaluate ? options.evaluate() : static_cast<double>(checked_loss(result.steps));
    report({result.epochs - 1, result.steps, last_lr, result.last_epoch_loss, {}}, options);
  }
  return result;
}

}  // namespace ddp
