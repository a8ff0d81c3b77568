#include <linear_ddp/training/trainer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/table_share.hpp>

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
    run_batch(step);
    const bool ends_epoch = batch + 1 == source_.batches_per_epoch();
    const bool is_last = step.part.last && (steps_left_ == 1 || (ends_epoch && epochs_left_ == 1));
    if (!is_last) source_.prepare(ends_epoch ? epoch + 1 : epoch, ends_epoch ? 0 : batch + 1);
    if (step.part.last) return step;
  }
}

TrainingResult Trainer::run(const TrainerOptions& options) {
  const bool cheap_loss = device_.memory_is_host();
  const bool all_rows = source_.one_step_over_all_rows();
  TrainingResult result;
  double last_lr = optimizer_.lr();
  steps_left_ = options.max_steps;

  for (std::int64_t epoch = 0; epoch < options.epochs && steps_left_ > 0; ++epoch) {
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
      if (reports_epoch) observer_.on_epoch({epoch - 1, result.steps - 1, last_lr, static_cast<double>(loss)});
      if (reports_step) observer_.on_step({result.steps, epoch, loss, optimizer_.lr(), step.update_rows});
      last_lr = optimizer_.lr();
    }
    checked_loss(result.steps);
    result.epochs = epoch + 1;
    if (all_rows) continue;
    result.last_epoch_loss = options.evaluate ? options.evaluate() : mean_loss(epoch_sum_, epoch_weight);
    observer_.on_epoch({epoch, result.steps, last_lr, result.last_epoch_loss});
  }
  if (all_rows && result.steps > 0) {
    if (!options.evaluate) {
      const Step step = source_.load(result.epochs, 0);
      replica_.backward(step.batch, step.divisor);
    }
    result.last_epoch_loss = options.evaluate ? options.evaluate() : static_cast<double>(checked_loss(result.steps));
    observer_.on_epoch({result.epochs - 1, result.steps, last_lr, result.last_epoch_loss});
  }
  return result;
}

double evaluate_loss(Device& device, ProcessGroup& group, Model& model, const Dataset& data) {
  constexpr std::int64_t piece_numel = 8 << 20;
  const std::int64_t piece = std::max<std::int64_t>(1, piece_numel / (data.in + data.out));
  const std::int64_t begin = share_begin(data.rows, group.rank(), group.size());
  const std::int64_t end = share_begin(data.rows, group.rank() + 1, group.size());
  const bool weighted = !data.weights.empty();
  const std::int64_t most = device.memory_is_host() ? 0 : std::min(piece, end - begin);
  Buffer<float> x(device, most * data.in), y(device, most * data.out), w(device, weighted ? most : 0);
  Buffer<double> device_sums(device, 2);
  std::array<double, 2> sums{};  // of losses and of weights
  for (std::int64_t row = begin; row < end; row += piece) {
    const std::int64_t rows = std::min(piece, end - row);
    Batch batch{rows, data.x.data() + row * data.in, data.y.data() + row * data.out,
                weighted ? data.weights.data() + row : nullptr};
    if (!device.memory_is_host()) {
      x.upload({batch.x, static_cast<std::size_t>(rows * data.in)});
      y.upload({batch.target, static_cast<std::size_t>(rows * data.out)});
      if (weighted) w.upload({batch.row_weight, static_cast<std::size_t>(rows)});
      batch = {rows, x.data(), y.data(), weighted ? w.data() : nullptr};
    }
    model.loss_sum(batch, device_sums.data());
    double piece_sum = 0;
    device_sums.download({&piece_sum, 1});
    sums[0] += piece_sum;
  }
  const auto& class_weight = model.loss().class_weight;
  for (auto row = static_cast<std::size_t>(begin); std::cmp_less(row, end); ++row) {
    const double own_class = class_weight.empty() ? 1.0 : class_weight.at(static_cast<std::size_t>(data.y[row]));
    sums[1] += own_class * (weighted ? static_cast<double>(data.weights[row]) : 1.0);
  }
  device_sums.upload(sums);
  device.wait(Queue::communication, Queue::compute);
  group.all_reduce(device_sums.span());
  device.wait(Queue::compute, Queue::communication);
  device_sums.download(sums);
  return sums[0] / (sums[1] * static_cast<double>(model.losses_of_a_row()));
}

}  // namespace ddp
