#include "bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/launch/mpi_check.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include "objective.hpp"
#include "runtime.hpp"

namespace ddp::app {
namespace {

using Work = std::function<void()>;

/// What is timed again and again, as the trainer repeats a step: the first of a kind as it is, then recorded.
class Part {
 public:
  /// `prepare` is the host's half, which tells the kind of the next; `before` runs ahead of each round, untimed.
  Part(Device& device, Work work, std::function<int()> prepare = {}, Work before = {})
      : device_(device), work_(std::move(work)), prepare_(std::move(prepare)), before_(std::move(before)) {}

  void operator()() {
    auto& [runs, recording] = kinds_[prepare_ ? prepare_() : 0];
    if (runs == 1) recording = device_.record(work_);
    if (recording)
      recording->replay();
    else
      work_();
    ++runs;
  }
  void before() const {
    if (before_) before_();
  }

  std::int64_t calls = 1;       // in a round
  std::vector<double> seconds;  // of one, in each round

 private:
  struct Kind {
    std::int64_t runs = 0;
    std::unique_ptr<Recording> recording;
  };
  Device& device_;
  Work work_;
  std::function<int()> prepare_;
  Work before_;
  std::map<int, Kind> kinds_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The slowest rank's, of one of so many calls, until the device has done them all.
double seconds_of(const BenchJob& job, Part& part, std::int64_t calls) {
  part.before();
  job.device.synchronize();
  {
    const Watchdog::Watch watch(job.watchdog, "wait for the other ranks", 0);
    check_mpi(MPI_Barrier(job.world.comm()), "begin a round together");
  }
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t call = 0; call < calls; ++call) part();
  job.device.synchronize();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  double seconds = taken.count() / static_cast<double>(calls);
  const Watchdog::Watch watch(job.watchdog, "wait for the other ranks", 0);
  all_reduce_max(job.world, {&seconds, 1});
  return seconds;
}

/// Rounds of some 10 ms of each part, one after the other.
void run_rounds(const BenchJob& job, std::vector<Part*> parts) {
  for (Part* part : parts) {
    seconds_of(job, *part, 3);  // makes plans, connections and the recording
    part->calls = static_cast<std::int64_t>(std::clamp(0.01 / seconds_of(job, *part, 3), 1.0, 20'000.0));
  }
  for (std::int64_t round = 0; round < job.options.rounds; ++round) {
    for (Part* part : parts) part->seconds.push_back(seconds_of(job, *part, part->calls));
  }
}

/// The same megabytes again and again, since drawing gigabytes takes longer than the benchmark.
Buffer<float> repeated(Device& device, std::int64_t numel, const std::vector<float>& values) {
  Buffer<float> buffer(device, numel);
  for (std::int64_t at = 0; at < numel; at += std::ssize(values)) {
    const std::int64_t count = std::min(std::ssize(values), numel - at);
    device.upload(buffer.data() + at, values.data(), static_cast<std::size_t>(count) * sizeof(float));
  }
  return buffer;
}

std::vector<float> random_values(TorchGenerator& generator, std::int64_t numel) {
  std::vector<float> values(static_cast<std::size_t>(std::min(numel, std::int64_t{1} << 20)));
  generator.randn(values);
  return values;
}

/// Normal ones, or classes.
std::vector<float> random_targets(TorchGenerator& generator, std::int64_t numel, LossKind kind, std::int64_t out) {
  std::vector<float> values = random_values(generator, numel);
  if (kind == LossKind::mse || kind == LossKind::huber) return values;
  const auto classes = static_cast<float>(kind == LossKind::cross_entropy ? out : 2);
  generator.rand(values);
  for (float& value : values) value = std::min(std::floor(value * classes), classes - 1);
  return values;
}

/// One that starts as nn.Linear does, the same on every rank.
Model make_model(Device& device, const LinearShape& shape, LossKind kind) {
  Model model(device, shape, {.kind = kind});
  TorchGenerator generator(0);
  std::size_t slot = 0;
  for (const LinearLayer& layer : model.layout().layers()) {
    std::vector<float> weight(static_cast<std::size_t>(layer.in * layer.out));
    std::vector<float> bias(static_cast<std::size_t>(layer.out));
    init_linear(generator, layer.in, weight, bias);
    model.upload(slot++, weight);
    model.upload(slot++, bias);
  }
  return model;
}

/// The bare products of all layers, from the first on; each layer's outputs are the next one's inputs.
class Products {
 public:
  Products(Device& device, Model& model, std::int64_t rows, const float* x)
      : device_(device), gradients_(device, model.layout().numel()) {
    const auto& layers = model.layout().layers();
    std::int64_t widest = 0;
    for (std::size_t i = 1; i < layers.size(); ++i) widest = std::max(widest, layers[i].in);
    dx_ = Buffer<float>(device, rows * widest);
    for (const LinearLayer& layer : layers) {
      outputs_.emplace_back(device, rows * layer.out);
      operations_.push_back({rows, layer.in, layer.out, x, model.parameters().data() + layer.weight,
                             outputs_.back().data(), gradients_.data() + layer.weight,
                             operations_.empty() ? nullptr : dx_.data()});
      x = outputs_.back().data();
    }
  }
  void operator()() const {
    for (const LinearProducts& operation : operations_) device_.linear_products(operation);
  }

 private:
  Device& device_;
  Buffer<float> gradients_, dx_;
  std::vector<Buffer<float>> outputs_;
  std::vector<LinearProducts> operations_;
};

/// What the parts work on.
struct Setup {
  Buffer<float> x, target, copied;
  Buffer<double> epoch_sum;
  Model model;
  Products products;
};

Setup set_up(const BenchJob& job, const BenchShape& shape) {
  constexpr std::int64_t most_copied = 64 << 20;  // values: larger inputs are copied there part by part
  Device& device = job.device;
  const LossKind kind = loss_kind(job.options.step);
  const std::int64_t out = shape.layers.out;
  const std::int64_t inputs = checked_product(shape.rows, shape.layers.in, "the inputs of a batch");
  const std::int64_t targets = checked_product(shape.rows, losses_of_a_row(kind, out), "the targets of a batch");
  static_cast<void>(checked_product(shape.rows, shape.layers.outputs(), "the outputs of a batch"));
  TorchGenerator generator(static_cast<std::uint64_t>(job.world.rank()));
  Buffer<float> x = repeated(device, inputs, random_values(generator, inputs));
  Buffer<float> target = repeated(device, targets, random_targets(generator, targets, kind, out));
  Model model = make_model(device, shape.layers, kind);
  Products products(device, model, shape.rows, x.data());
  return {std::move(x),
          std::move(target),
          Buffer<float>(device, std::min(inputs, most_copied)),
          Buffer<double>(device, 1),
          std::move(model),
          std::move(products)};
}

}  // namespace

double StepTimes::overlap() const {
  return std::clamp((backward + reduce + update - step) / reduce, 0.0, 1.0);
}

StepTimes time_step(const BenchJob& job, const BenchShape& shape) {
  Device& device = job.device;
  Setup setup = agree(job.world, [&] { return set_up(job, shape); });
  Model& model = setup.model;
  TrainOptions step_options = job.options.step;
  step_options.lr = 1e-6;  // thousands of steps on one batch stay finite
  DistributedDataParallel replica(job.world, device, job.group, model, step_options.buckets);
  replica.register_comm_hook(agree(job.world, [&] { return make_hook(step_options.compression, device, model); }));
  const auto optimizer = agree(job.world, [&] { return make_optimizer(device, model, step_options, 0, 0, std::nullopt); });

  const Batch batch{shape.rows, setup.x.data(), setup.target.data()};
  const double total = static_cast<double>(shape.rows) * job.world.size();
  const auto scale = static_cast<float>(1 / (total * static_cast<double>(model.losses_of_a_row())));
  // Sums of sums would soon be infinite.
  const auto clear_gradients = [&] { model.backward({}, 0); };
  const auto prepare_update = [&] {
    optimizer->prepare();
    return 0;
  };

  Part step(
      device,
      [&] {
        replica.backward(batch, total);
        device.accumulate(replica.losses_on_device(), 1, total, setup.epoch_sum.data());
        optimizer->update();
      },
      [&] {
        optimizer->prepare();
        return replica.prepare();
      });
  Part update(
      device, [&] { optimizer->update(); }, prepare_update);
  Part backward(device, [&] { model.backward(batch, scale); });
  // PowerSGD adds what it has kept of the steps before, to clear gradients too.
  const bool grows = step_options.compression.kind == Compression::Kind::powersgd;
  Part reduce(
      device,
      [&] {
        if (grows) clear_gradients();
        replica.reduce();
      },
      [&] { return replica.prepare(); }, clear_gradients);
  Part products(device, [&] { setup.products(); });
  Part sum(
      device,
      [&] {
        device.wait(Queue::communication, Queue::compute);
        job.group.all_reduce(model.gradients());
        device.wait(Queue::compute, Queue::communication);
      },
      {}, clear_gradients);
  Part copy(device, [&] {
    for (std::int64_t at = 0; at < setup.x.numel(); at += setup.copied.numel()) {
      const std::int64_t numel = std::min(setup.copied.numel(), setup.x.numel() - at);
      device.copy(setup.copied.data(), setup.x.data() + at, static_cast<std::size_t>(numel) * sizeof(float));
    }
  });
  Part launch(device, [&] { device.accumulate(setup.x.data(), 1, 1, setup.epoch_sum.data()); });
  // The update has a step's gradients: of zeros, Adam's means would become numbers that CPUs are slow with.
  std::vector<Part*> parts{&step, &update, &backward, &reduce, &products, &sum, &copy};
  const bool is_gpu = device.kind() == "cuda";
  if (is_gpu) parts.push_back(&launch);

  StepTimes times;
  times.parameters = model.layout().parameters();
  replica.backward(batch, total);  // the one step before compression begins
  const std::uint64_t reduced_before = job.group.reduced_bytes();
  replica.backward(batch, total);
  times.reduced_bytes = job.group.reduced_bytes() - reduced_before;
  run_rounds(job, parts);

  std::vector<double> ratios;
  for (std::size_t round = 0; round < step.seconds.size(); ++round) {
    ratios.push_back(step.seconds[round] / (products.seconds[round] + sum.seconds[round]));
  }
  times.step = median(step.seconds);
  times.backward = median(backward.seconds);
  times.reduce = median(reduce.seconds);
  times.update = median(update.seconds);
  times.products = median(products.seconds);
  times.sum = median(sum.seconds);
  times.copy = median(copy.seconds);
  if (is_gpu) times.launch = median(launch.seconds);
  times.ratio = median(ratios);
  replica.backward(batch, total);
  if (!std::isfinite(replica.loss())) {
    throw AgreedError(Status::failed, fmt::format("the loss is {} after the timed steps of {}, so the times are not to "
                                                  "be trusted",
                                                  replica.loss(), shape.layers.description()));
  }
  return times;
}

}  // namespace ddp::app
