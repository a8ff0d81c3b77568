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
  stop_requested_ = replica_.stop_requested();
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
  const bool first = now_.train_losses.empty();
  bool rests = options.tolerance >= 0 && !first;
  if (first) now_.train_losses = losses;
  for (std::size_t head = 0; head < losses.size(); ++head) {
    const double before = now_.train_losses[head];
    if (!now_.stopped[head]) now_.train_losses[head] = losses[head];
    report.head = static_cast<std::int64_t>(head);
    report.lr = now_.lrs[head];
    report.train_loss = now_.train_losses[head];
    if (!now_.validations.empty()) report.validation = now_.validations[head];
    observer_.on_epoch(report);
    now_.stopped[head] = report.validation && report.validation->stops;
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

bool Trainer::goes_on(const TrainerOptions& options, bool complete) {
  const bool interrupted = stop_requested_ && !complete;
  if (options.between_steps && options.between_steps(now_.steps, complete || interrupted)) replica_.request_stop();
  return !interrupted;
}

bool Trainer::run_epoch(std::int64_t epoch, std::int64_t first_step, const TrainerOptions& options,
                        TrainingResult& result) {
  // A batch is made on the host while the device works on the one before: now and then it may as well wait for it.
  constexpr std::int64_t look_every = 100;
  const bool cheap_loss = device_.memory_is_host(), all_rows = source_.one_step_over_all_rows();
  const std::int64_t steps = source_.steps_per_epoch();
  epochs_left_ = options.epochs - epoch;
  if (first_step == 0) {
    now_.epoch_weight = 0;
    epoch_sums_.upload(std::vector<double>(losses_.size(), 0.0));
  }
  for (std::int64_t i = first_step; i < steps && steps_left_ > 0; ++i) {
    for (std::size_t head = 0; options.lr && head < optimizers_.size(); ++head) {
      optimizers_[head]->set_lr(options.lr(first_lrs_[head], now_.steps));
    }
    const Step step = run_step(epoch, i * source_.accumulate());
    --steps_left_;
    ++now_.steps;
    result.rows += step.update_rows;
    now_.epoch_weight += step.weight;
    // A step over all rows evaluates the parameters that the epoch before left: its report costs no pass of its own.
    const bool reports_epoch = all_rows && epoch > 0;
    const bool reports_step = options.log_every > 0 && now_.steps % options.log_every == 0;
    if (cheap_loss || reports_epoch || reports_step || now_.steps % look_every == 0) check_losses(now_.steps);
    if (reports_epoch) {
      now_.stops = report({.epoch = epoch - 1, .step = now_.steps - 1}, {losses_.begin(), losses_.end()}, options);
    }
    for (std::size_t head = 0; head < optimizers_.size(); ++head) {
      now_.lrs[head] = optimizers_[head]->lr();
      if (!reports_step) continue;
      observer_.on_step(
          {now_.steps, epoch, losses_[head], now_.lrs[head], step.update_rows, static_cast<std::int64_t>(head)});
    }
    if (i + 1 < steps && !goes_on(options, steps_left_ == 0)) return false;
  }
  check_losses(now_.steps);
  if (options.validate) now_.validations = options.validate(epoch);
  const auto is_stopped = [](const Validation& validation) { return validation.stops; };
  now_.stops =
      now_.stops || (options.validate && std::all_of(now_.validations.begin(), now_.validations.end(), is_stopped));
  if (!all_rows) {
    const auto losses = options.evaluate ? options.evaluate() : mean_losses(now_.epoch_weight);
    now_.stops = report({.epoch = epoch, .step = now_.steps}, losses, options) || now_.stops;
  }
  // An epoch that ended in its middle, with the last step, was left before its end: more steps may go on there.
  const bool complete = now_.stops || epochs_left_ == 1 || steps_left_ == 0;
  return now_.steps % steps != 0 || goes_on(options, complete);
}

TrainingResult Trainer::run(const TrainerOptions& options) {
  const std::int64_t steps = source_.steps_per_epoch();
  TrainingResult result;
  std::int64_t epoch = now_.steps / steps, step = now_.steps % steps;
  if (now_.steps > 0) source_.start_at(epoch, step * source_.accumulate());
  steps_left_ = options.max_steps - now_.steps;
  now_.stopped.resize(optimizers_.size());
  now_.lrs.resize(optimizers_.size());
  for (; epoch < options.epochs && (steps_left_ > 0 || step > 0) && !now_.stops && !result.interrupted; ++epoch) {
    result.interrupted = !run_epoch(epoch, std::exchange(step, 0), options, result);
  }
  result.steps = now_.steps;
  result.epochs = epoch;
  if (source_.one_step_over_all_rows() && result.steps > 0 && !result.interrupted) {
    if (!options.evaluate) {
      const Step all_rows = source_.load(result.epochs, 0);
      replica_.backward(all_rows.batch, all_rows.divisor);
      check_losses(result.steps);
    }
    const auto losses = options.evaluate ? options.evaluate() : std::vector<double>(losses_.begin(), losses_.end());
    report({.epoch = result.epochs - 1, .step = result.steps}, losses, options);
  }
  result.train_losses = now_.train_losses;
  now_ = {};
  return result;
}

void Trainer::exchange(Checkpoint& state) {
  const std::size_t heads = optimizers_.size();
  Model& model = replica_.model();
  std::vector<float> values;
  for (std::size_t slot = 0; slot < model.layout().slots().size(); ++slot) {
    const TensorSlot& tensor = model.layout().slots()[slot];
    if (!state.gives_back()) values = model.download(slot);
    state.exchange(tensor.name, values, static_cast<std::size_t>(tensor.numel));
    if (state.gives_back()) model.upload(slot, values);
  }
  state.exchange("steps", now_.steps);
  for (std::size_t head = 0; head < heads; ++head) {
    std::int64_t steps = optimizers_[head]->steps();
    state.exchange(fmt::format("optimizer.{}.steps", head), steps);
    optimizers_[head]->go_on_after(steps);
    for (auto& [name, buffer] : optimizers_[head]->memory()) {
      const auto numel = static_cast<std::size_t>(buffer.numel());
      values.resize(numel);
      if (!state.gives_back()) buffer.download(values);
      state.exchange(fmt::format("optimizer.{}.{}", head, name), values, numel);
      if (values.size() != numel) fail("go on from a checkpoint", "it has no " + name, "give --optimizer as it was");
      if (state.gives_back()) buffer.upload(values);
    }
  }
  std::vector<double> sums(heads), weight{now_.epoch_weight}, validations,
      stopped(now_.stopped.begin(), now_.stopped.end());
  epoch_sums_.download(sums);
  for (const Validation& one : now_.validations) {
    validations.insert(validations.end(), {one.loss, one.score, one.stops ? 1.0 : 0.0});
  }
  state.exchange("stops", now_.stops);
  state.exchange("epoch.sums", sums, heads);
  state.exchange("epoch.weight", weight, 1);
  state.exchange("lrs", now_.lrs, heads);
  state.exchange("validations", validations, 3 * heads);
  state.exchange("stopped", stopped, heads);
  state.exchange("train_losses", now_.train_losses, heads);
  if (!state.gives_back()) return;
  epoch_sums_.upload(sums);
  now_.epoch_weight = weight.empty() ? 0 : weight[0];
  now_.stopped.assign(stopped.begin(), stopped.end());
  now_.validations.clear();
  for (std::size_t i = 0; i < validations.size(); i += 3) {
    now_.validations.push_back({validations[i], validations[i + 1], validations[i + 2] != 0});
  }
}

}  // namespace ddp
