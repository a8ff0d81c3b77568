#include <linear_ddp/training/trainer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/table_share.hpp>

namespace ddp {
namespace {

double mean_loss(const Buffer<double>& sum_over_rows, std::int64_t rows) {
  double sum = 0;
  sum_over_rows.download({&sum, 1});
  return sum / static_cast<double>(rows);
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

void Trainer::run_step(const Step& step, const TrainerOptions& options) {
  const auto work = [this, step, averaging = options.averaging] {
    replica_.backward(step.batch, averaging == Averaging::rows ? std::optional(step.global_rows) : std::nullopt);
    device_.accumulate(replica_.loss_on_device(), static_cast<double>(step.global_rows), epoch_sum_.data());
    optimizer_.step();
  };
  // The first step of a kind runs as it is: it makes plans and connections, and the first of all differs. The second is
  // recorded.
  auto& [runs, recording] = recordings_[{step.batch.x, step.global_rows, options.averaging}];
  if (runs == 1) recording = device_.record(work);
  if (recording)
    recording->replay();
  else
    work();
  ++runs;
}

void Trainer::prepare_next(std::int64_t epoch, std::int64_t step, std::int64_t steps_done,
                           const TrainerOptions& options) {
  const bool begins_epoch = step + 1 == source_.steps_per_epoch();
  if (begins_epoch) ++epoch;
  if (epoch < options.epochs && steps_done < options.max_steps) source_.prepare(epoch, begins_epoch ? 0 : step + 1);
}

TrainingResult Trainer::run(const TrainerOptions& options) {
  const bool cheap_loss = device_.memory_is_host();
  const bool all_rows = source_.one_step_over_all_rows() && options.averaging == Averaging::rows;
  TrainingResult result;

  for (std::int64_t epoch = 0; epoch < options.epochs && result.steps < options.max_steps; ++epoch) {
    std::int64_t epoch_rows = 0;
    epoch_sum_.upload(std::array{0.0});
    for (std::int64_t i = 0; i < source_.steps_per_epoch() && result.steps < options.max_steps; ++i) {
      const Step step = source_.load(epoch, i);
      run_step(step, options);
      ++result.steps;
      prepare_next(epoch, i, result.steps, options);
      epoch_rows += step.global_rows;
      // A step over all rows evaluates the parameters that the epoch before left: its report costs no pass of its own.
      const bool reports_epoch = all_rows && epoch > 0;
      const bool reports_step = options.log_every > 0 && result.steps % options.log_every == 0;
      const float loss = cheap_loss || reports_epoch || reports_step ? checked_loss(result.steps) : 0;
      if (reports_epoch) observer_.on_epoch({epoch - 1, result.steps - 1, static_cast<double>(loss)});
      if (reports_step) observer_.on_step({result.steps, epoch, loss, step.global_rows});
    }
    checked_loss(result.steps);
    result.rows += epoch_rows;
    result.epochs = epoch + 1;
    if (all_rows) continue;
    result.last_epoch_loss = options.evaluate ? options.evaluate() : mean_loss(epoch_sum_, epoch_rows);
    observer_.on_epoch({epoch, result.steps, result.last_epoch_loss});
  }
  if (all_rows && result.steps > 0) {
    if (!options.evaluate) {
      const Step step = source_.load(result.epochs, 0);
      replica_.backward(step.batch, step.global_rows);
    }
    result.last_epoch_loss = options.evaluate ? options.evaluate() : static_cast<double>(checked_loss(result.steps));
    observer_.on_epoch({result.epochs - 1, result.steps, result.last_epoch_loss});
  }
  return result;
}

double evaluate_loss(Device& device, ProcessGroup& group, Model& model, const Dataset& data) {
  constexpr std::int64_t piece_numel = 8 << 20;
  const std::int64_t piece = std::max<std::int64_t>(1, piece_numel / (data.in + data.out));
  const std::int64_t begin = share_begin(data.rows, group.rank(), group.size());
  const std::int64_t end = share_begin(data.rows, group.rank() + 1, group.size());
  const std::int64_t most = device.memory_is_host() ? 0 : std::min(piece, end - begin);
  Buffer<float> x(device, most * data.in), y(device, most * data.out);
  Buffer<double> sum(device, 1);
  std::array<double, 1> total{0};
  for (std::int64_t row = begin; row < end; row += piece) {
    const std::int64_t rows = std::min(piece, end - row);
    Batch batch{rows, data.x.data() + row * data.in, data.y.data() + row * data.out};
    if (!device.memory_is_host()) {
      x.upload({batch.x, static_cast<std::size_t>(rows * data.in)});
      y.upload({batch.target, static_cast<std::size_t>(rows * data.out)});
      batch = {rows, x.data(), y.data()};
    }
    model.loss_sum(batch, sum.data());
    std::array<double, 1> piece_sum{};
    sum.download(piece_sum);
    total[0] += piece_sum[0];
  }
  sum.upload(total);
  device.wait(Queue::communication, Queue::compute);
  group.all_reduce(sum.span());
  device.wait(Queue::compute, Queue::communication);
  sum.download(total);
  return total[0] / (static_cast<double>(data.rows) * static_cast<double>(data.out));
}

}  // namespace ddp
