// A training step on the GPU against its bare limits, in one run: see `limit` of each row.
//   mpirun -np 1 build/gpu_step_bench [--json=FILE] [--small]
// Rounds alternate between what is compared; medians of the slowest rank's times count, so that noise hits all alike.
// --small: little shapes and few rounds, to try the program itself on a stand-in GPU.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/device/select.hpp>
#include <linear_ddp/optim/sgd.hpp>
#include <linear_ddp/parallel/distributed_data_parallel.hpp>
#include "linear_ddp/device/cuda_check.hpp"
#include "linear_ddp/device/cuda_matmul.hpp"

namespace {

using Clock = std::chrono::steady_clock;

/// latency: a graph's launch and the all-reduce; products: cuBLASLt's two; bandwidth: X read once, as fast as a copy.
enum class Limit { latency, products, bandwidth };

struct Shape {
  std::int64_t rows, in, out;
  Limit limit;
  double budget;  ///< step / limit; 0: none is set
};

// tests/gpu/torch_bench.py has the same shapes.
const std::vector<Shape> full_shapes{
    {20, 10, 10, Limit::latency, 1.5},         {64, 256, 256, Limit::products, 0},
    {1024, 1024, 1024, Limit::products, 0},    {4096, 4096, 4096, Limit::products, 1 / 0.95},
    {100'000, 256, 1, Limit::bandwidth, 1.25}, {1'000'000, 512, 1, Limit::bandwidth, 1.25},
};
const std::vector<Shape> small_shapes{
    {20, 10, 10, Limit::latency, 1.5}, {64, 32, 32, Limit::products, 0}, {1000, 16, 1, Limit::bandwidth, 1.25}};

/// What each step needs and all shapes share.
struct Bench {
  const ddp::World& world;
  ddp::Device& device;
  ddp::ProcessGroup& group;
  int rounds;

  /// Seconds for one call, the slowest rank's, from the first call until the GPU has done all of them.
  template <class Work>
  double seconds_of(int calls, const Work& work) const {
    device.synchronize();
    MPI_Barrier(world.comm());
    const auto begin = Clock::now();
    for (int call = 0; call < calls; ++call) work();
    device.synchronize();
    double seconds = std::chrono::duration<double>(Clock::now() - begin).count() / calls;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, world.comm());
    return seconds;
  }

  /// Medians, of rounds of some 10 ms each.
  std::vector<double> compare(const std::vector<std::function<void()>>& works) const {
    std::vector<int> calls;
    for (const auto& work : works) {
      seconds_of(5, work);  // makes plans and connections, wakes the clocks
      calls.push_back(static_cast<int>(std::clamp(0.01 / seconds_of(5, work), 1.0, 2000.0)));
    }
    std::vector<std::vector<double>> times(works.size());
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < works.size(); ++i) times[i].push_back(seconds_of(calls[i], works[i]));
    }
    std::vector<double> medians;
    for (auto& values : times) {
      const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
      std::nth_element(values.begin(), middle, values.end());
      medians.push_back(*middle);
    }
    return medians;
  }
};

/// Normal values; the same megabytes again and again, since drawing gigabytes takes longer than the benchmark.
ddp::Buffer<float> random_values(ddp::Device& device, std::int64_t numel) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(std::min<std::int64_t>(numel, 1 << 20)));
  for (float& value : values) value = normal(engine);
  ddp::Buffer<float> buffer(device, numel);
  for (std::int64_t at = 0; at < numel; at += std::ssize(values)) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(values), numel - at));
    device.upload(buffer.data() + at, values.data(), count * sizeof(float));
  }
  return buffer;
}

/// The parts of the limit, each to be timed alone, the time they allow a step, and what that is called.
struct Parts {
  std::vector<std::function<void()>> works;
  std::function<double(const std::vector<double>&)> limit;
  const char* name;
};

struct Scratch {
  ddp::Buffer<float> y, gradient, copy;
  ddp::Buffer<double> sum;
  std::unique_ptr<ddp::CudaMatmul> matmul;
  std::shared_ptr<ddp::Recording> recording;
};

Parts parts_of(const Bench& bench, const Shape& shape, ddp::Model& model, const float* x, Scratch& scratch) {
  ddp::Device& device = bench.device;
  const auto stream = static_cast<cudaStream_t>(device.native(ddp::Queue::compute));
  const auto [rows, in, out, limit, budget] = shape;
  switch (limit) {
    case Limit::latency: {
      scratch.y = ddp::Buffer<float>(device, model.layout().parameters());
      scratch.sum = ddp::Buffer<double>(device, 1);
      scratch.recording = device.record([&] { device.accumulate(scratch.y.data(), 1, 1, scratch.sum.data()); });
      const auto launch = [&scratch] { scratch.recording->replay(); };
      const auto reduce = [&group = bench.group, &scratch] { group.all_reduce(scratch.y.span()); };
      return {{launch, reduce}, [](const auto& t) { return t[0] + t[1]; }, "graph launch + all-reduce"};
    }
    case Limit::products: {
      scratch.y = ddp::Buffer<float>(device, rows * out);
      scratch.gradient = ddp::Buffer<float>(device, out * in);
      scratch.matmul = std::make_unique<ddp::CudaMatmul>(stream);
      const auto products = [rows = rows, in = in, out = out, x, w = model.parameters().data(), &scratch] {
        scratch.matmul->forward(rows, in, out, x, w, nullptr, scratch.y.data());
        scratch.matmul->gradient(rows, in, out, x, scratch.y.data(), false, scratch.gradient.data(), nullptr);
      };
      products();
      device.synchronize();
      scratch.recording = device.record(products);
      return {{[&scratch] { scratch.recording->replay(); }}, [](const auto& t) { return t[0]; }, "cuBLASLt's products"};
    }
    case Limit::bandwidth: {
      scratch.copy = ddp::Buffer<float>(device, rows * in);
      const auto copy = [x, stream, &scratch] {
        ddp::check(
            cudaMemcpyAsync(scratch.copy.data(), x, scratch.copy.span().size_bytes(), cudaMemcpyDeviceToDevice, stream),
            "queue a copy");
      };
      // A copy moves every byte twice.
      return {{copy}, [](const auto& t) { return t[0] / 2; }, "X read at copy bandwidth"};
    }
  }
  ddp::fail("choose a limit", "unknown limit");
}

nlohmann::ordered_json measure(const Bench& bench, const Shape& shape) {
  ddp::Device& device = bench.device;
  const std::int64_t rows = shape.rows, in = shape.in, out = shape.out;
  const auto x = random_values(device, rows * in), y = random_values(device, rows * out);
  ddp::Model model(device, {in, out, true});
  ddp::DistributedDataParallel replica(bench.world, device, bench.group, model);
  ddp::Sgd optimizer(device, model, {.lr = 1e-6});
  ddp::Buffer<double> epoch_sum(device, 1);

  // The trainer's step.
  const std::function<void()> eager = [&] {
    replica.backward({rows, x.data(), y.data()}, rows * bench.world.size());
    device.accumulate(replica.losses_on_device(), 1, static_cast<double>(rows), epoch_sum.data());
    optimizer.step();
  };
  eager();
  const auto recording = device.record(eager);
  Scratch scratch;
  const Parts parts = parts_of(bench, shape, model, x.data(), scratch);

  std::vector<std::function<void()>> works{[&] { recording->replay(); }, eager};
  works.insert(works.end(), parts.works.begin(), parts.works.end());
  std::vector<double> medians = bench.compare(works);
  if (!std::isfinite(replica.loss())) ddp::fail("time a step", "its loss is not finite");
  const double step = medians[0], eager_step = medians[1];
  medians.erase(medians.begin(), medians.begin() + 2);
  const double limit = parts.limit(medians);

  nlohmann::ordered_json row{{"shape", {rows, in, out}}, {"ranks", bench.world.size()},
                             {"step_us", 1e6 * step},    {"unrecorded_us", 1e6 * eager_step},
                             {"limit", parts.name},      {"limit_us", 1e6 * limit},
                             {"ratio", step / limit}};
  if (shape.budget > 0) row["budget"] = shape.budget;
  for (const double part : medians) row["limit_parts_us"].push_back(1e6 * part);
  row["tflop_per_s"] = 4e-12 * static_cast<double>(rows * in) * static_cast<double>(out) / step;
  row["x_gb_per_s"] = 4e-9 * static_cast<double>(rows * in) / step;
  return row;
}

std::string table_line(const nlohmann::ordered_json& row) {
  const auto& shape = row["shape"];
  return fmt::format("{:>8} x {:>4} -> {:>4} | {:>11.2f} | {:>11.2f} | {:>11.2f}  {:<26} | {:>5.2f}{}\n",
                     shape[0].get<int>(), shape[1].get<int>(), shape[2].get<int>(), row["step_us"].get<double>(),
                     row["unrecorded_us"].get<double>(), row["limit_us"].get<double>(), row["limit"].get<std::string>(),
                     row["ratio"].get<double>(),
                     row.contains("budget") ? fmt::format(" (<= {:.2f})", row["budget"].get<double>()) : "");
}

void run(const ddp::World& world, const std::string& json, bool small) {
  const auto [device, reason] = ddp::select_device(world, ddp::DeviceRequest::cuda);
  ddp::Watchdog watchdog;
  const auto group = ddp::make_nccl_group(world, *device, watchdog, std::chrono::seconds(60));
  const bool speaks = world.rank() == 0;
  if (speaks) {
    fmt::print(
        "{} rank(s), {} ({}), NCCL {}; float32 (there is no TF32 or bf16 yet); us, medians; on one "
        "rank NCCL has nothing to move\n",
        world.size(), device->description(), reason, ddp::nccl_version());
    fmt::print("    rows x   in ->  out |        step |  unrecorded |       limit {:26} | ratio\n", "");
  }
  std::ofstream file;
  if (speaks && !json.empty()) file.open(json);
  if (!file) ddp::fail("write " + json, "it cannot be opened");
  for (const Shape& shape : small ? small_shapes : full_shapes) {
    const auto row = measure({world, *device, *group, small ? 3 : 21}, shape);
    if (!speaks) continue;
    std::cout << table_line(row) << std::flush;
    if (file.is_open()) file << row.dump() << std::endl;
  }
  group->close();
}

}  // namespace

int main(int argc, char** argv) {
  const ddp::World world;
  std::string json;
  bool small = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--json=")) json = argument.substr(7);
    if (argument == "--small") small = true;
  }
  try {
    run(world, json, small);
  } catch (const ddp::Error& error) {
    std::cerr << "gpu_step_bench: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
