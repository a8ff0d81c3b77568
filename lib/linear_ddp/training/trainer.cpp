#include <linear_ddp/training/trainer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <linear_ddp/base/error.hpp>

namespace ddp {

Trainer::Trainer(Device& device, DistributedDataParallel& replica, std::vector<Optimizer*> optimizers,
                 BatchSource& source, TrainingObserver& observer)
    : device_(device),
      replica_(replica),
      optimizers_(std::move(optimizers)),
      source_(source),
      observer_(observer),
      losses_(optimizers_.size()),
      epoch_sums_(device, std::ssize(optimizers_)) {
  for (const Optimizer* optimizer : optimizers_) first_lrs_.push_back(optimizer->lr());
}

void Trainer::check_losses(std::int64_t step) {
  replica_.losses(losses_);
  // The all-reduce gave every rank the same values, so every rank throws.
  if (std::none_of(losses_.begin(), losses_.end(), [](float loss) { return std::isfinite(loss); })) {
    throw AgreedError(
        Status::failed,
        fmt::format("the loss {}is {} at step {}: training diverged; use a smaller --lr, and "
                    "--standardize when features differ in scale",
                    losses_.size() == 1 ? "" : fmt::format("of each of {} heads ", losses_.size()), losses_[0], step));
  }
}

void Trainer::run_batch(const Step& step, int reduction) {
  // A sum of weights differs from step to step: it is not for a recording.
  const bool recorded_sum = step.batch.row_weight == nullptr;
  const auto add_loss = [this, weight = step.weight] {
    device_.accumulate(replica_.losses_on_device(), epoch_sums_.numel(), weight, epoch_sums_.data());
  };
  const auto work = [this, step, recorded_sum, add_loss] {
    replica_.backward(step.batch, step.divisor, step.part);
    if (!step.part.last) return;
    if (recorded_sum) add_loss();
    for (Optimizer* optimizer : optimizers_) optimizer->update();
  };
  // The first of a kind runs as it is: it makes plans and connections, and the first step of all differs. The second is
  // recorded.
  auto& [runs, recording] =
      recordings_[{step.batch.x, step.global_rows, step.update_rows, step.part.first, step.part.last, reduction}];
  if (runs == 1) recording = device_.record(work);
  if (recording)
    recording->replay();
  else
    work();
  ++runs;
  if (step.part.last && !recorded_sum) add_loss();
}

Step Trainer::run_step(std::int64_t epoch, std::int64_t batch) {
  for (Optimizer* optimizer : optimizers_) optimizer->prepare();
  const int reduction = replica_.prepare();
  for (;; ++batch) {
    const Step step = source_.load(epoch, batch);
    const bool ends_epoch = batch + 1 == source_.batches_per_epoch();
    const bool is_last = step.part.last && (steps_left_ == 1 || (ends_epoch && epochs_left_ == 1));
    const std::int64_t next_epoch = ends_epoch ? epoch + 1 : epoch, next_batch = ends_epoch ? 0 : batch + 1;
    if (!is_last) source_.read_ahead(next_epoch, next_batch);
    run_batch(step, reduction);
    if (!is_last) source_.prepare(next_epoch, next_batch);
    if (step.part.last) return step;
  }
}

bool Trainer::report(TrainingObserver::EpochReport report, const std::vector<double>& losses,
                     const TrainerOptions& options) {
  const bool first = train_losses_.empty();
  bool rests = options.tolerance >= 0 && !first;
  if (first) train_losses_ = losses;
  for (std::size_t head = 0; head < losses.size(); ++head) {
    const double before = train_losses_[head];
    if (!stopped_[head]) train_losses_[head] = losses[head];
    report.head = static_cast<std::int64_t>(head);
    report.lr = last_lrs_[head];
    report.train_loss = train_losses_[head];
    if (!validations_.empty()) report.validation = validations_[head];
    observer_.on_epoch(report);
    stopped_[head] = report.validation && report.validation->stops;
    rests = rests && std::abs(before - report.train_loss) <= options.tolerance * std::abs(before);
  }
  return rests;
}

std::vector<double> Trainer::mean_losses(double weight) const {
  std::vector<double> losses(losses_.size());
  epoch_sums_.download(losses);
  for (double& loss : losses) loss /= weight;
  return losses;
}

TrainingResult Trainer::run(const TrainerOptions& options) {
  const bool cheap_loss = device_.memory_is_host();
  const bool all_rows = source_.one_step_over_all_rows();
  TrainingResult result;
  bool stops = false;
  steps_left_ = options.max_steps;
  train_losses_.clear();
  validations_.clear();
  stopped_.assign(optimizers_.size(), false);
  last_lrs_.resize(optimizers_.size());
  const auto losses_of_step = [this] { return std::vector<double>(losses_.begin(), losses_.end()); };

  for (std::int64_t epoch = 0; epoch < options.epochs && steps_left_ > 0 && !stops; ++epoch) {
    epochs_left_ = options.epochs - epoch;
    double epoch_weight = 0;
    epoch_sums_.upload(std::vector<double>(losses_.size(), 0.0));
    for (std::int64_t i = 0; i < source_.steps_per_epoch() && steps_left_ > 0; ++i) {
      for (std::size_t head = 0; options.lr && head < optimizers_.size(); ++head) {
        optimizers_[head]->set_lr(options.lr(first_lrs_[head], result.steps));
      }
      const Step step = run_step(epoch, i * source_.accumulate());
      --steps_left_;
      ++result.steps;
      result.rows += step.update_rows;
      epoch_weight += step.weight;
      // A step over all rows evaluates the parameters that the epoch before left: its report costs no pass of its own.
      const bool reports_epoch = all_rows && epoch > 0;
      const bool reports_step = options.log_every > 0 && result.steps % options.log_every == 0;
      if (cheap_loss || reports_epoch || reports_step) check_losses(result.steps);
      if (reports_epoch) stops = report({.epoch = epoch - 1, .step = result.steps - 1}, losses_of_step(), options);
      for (std::size_t head = 0; head < optimizers_.size(); ++head) {
        last_lrs_[head] = optimizers_[head]->lr();
        if (!reports_step) continue;
        observer_.on_step(
            {result.steps, epoch, losses_[head], last_lrs_[head], step.update_rows, static_cast<std::int64_t>(head)});
      }
    }
    check_losses(result.steps);
    result.epochs = epoch + 1;
    if (options.validate) validations_ = options.validate(epoch);
    const auto is_stopped = [](const Validation& validation) { return validation.stops; };
    stops = stops || (options.validate && std::all_of(validations_.begin(), validations_.end(), is_stopped));
    if (all_rows) continue;
    const auto losses = options.evaluate ? options.evaluate() : mean_losses(epoch_weight);
    stops = report({.epoch = epoch, .step = result.steps}, losses, options) || stops;
  }
  if (all_rows && result.steps > 0) {
    if (!options.evaluate) {
      const Step step = source_.load(result.epochs, 0);
      replica_.backward(step.batch, step.divisor);
      check_losses(result.steps);
    }
    report({.epoch = result.epochs - 1, .step = result.steps}, options.evaluate ? options.evaluate() : losses_of_step(),
           options);
  }
  result.train_losses = train_losses_;
  return result;
}

}  // namespace ddp
