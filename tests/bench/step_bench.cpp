// A training step against its bare limits, in one run: the two matrix products alone plus MPI_Allreduce alone.
//   mpirun -np 2 build/step_bench [rows in out]...
// Rounds alternate between the three; medians of the slowest rank's times are compared, so noise hits all alike.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include <linear_ddp/optim/sgd.hpp>
#include <linear_ddp/parallel/distributed_data_parallel.hpp>
#include "linear_ddp/device/gemm.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Shape {
  std::int64_t rows, in, out;
};

std::vector<float> random_values(std::int64_t numel) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(numel));
  for (float& value : values) value = normal(engine);
  return values;
}

/// Seconds for one call, the slowest rank's, over `calls` calls.
template <class Work>
double seconds_of(int calls, const Work& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = Clock::now();
  for (int call = 0; call < calls; ++call) work();
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count() / calls;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void measure(const ddp::World& world, const Shape& shape) {
  const auto [rows, in, out] = shape;
  const auto device = ddp::make_cpu_device();
  // As the program does: each collective is marked for the watchdog.
  ddp::Watchdog watchdog(std::chrono::seconds(120), [](const std::string&) { std::abort(); });
  const auto group = ddp::make_mpi_group(world, watchdog);
  ddp::Model model(*device, {in, out, true});
  ddp::DistributedDataParallel replica(world, *device, *group, model);
  ddp::Sgd optimizer(*device, model, {.lr = 1e-6});
  const auto x = random_values(rows * in), y = random_values(rows * out);
  const ddp::Batch batch{rows, x.data(), y.data()};

  ddp::Buffer<float> outputs(*device, rows * out), gradient(*device, out * in);
  ddp::Buffer<float> reduced(*device, model.layout().parameters());
  const auto products = [&] {
    ddp::gemm::product_nt(rows, out, in, x.data(), model.parameters().data(), 0, outputs.data());
    ddp::gemm::product_tn(out, in, rows, outputs.data(), x.data(), 0, gradient.data());
  };
  const auto all_reduce = [&] {
    constexpr std::int64_t piece = (2 << 20) / sizeof(float);
    for (std::int64_t at = 0; at < reduced.numel(); at += piece) {
      MPI_Allreduce(MPI_IN_PLACE, reduced.data() + at, static_cast<int>(std::min(piece, reduced.numel() - at)),
                    MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
  };
  const auto step = [&] {
    replica.backward(batch, rows * world.size());
    optimizer.step();
  };

  double estimate = seconds_of(20, step);
  const int calls = static_cast<int>(std::clamp(0.02 / estimate, 1.0, 20'000.0));
  std::vector<double> step_times, product_times, reduce_times, ratios;
  for (int round = 0; round < 41; ++round) {
    step_times.push_back(seconds_of(calls, step));
    product_times.push_back(seconds_of(calls, products));
    reduce_times.push_back(seconds_of(calls, all_reduce));
    ratios.push_back(step_times.back() / (product_times.back() + reduce_times.back()));
  }
  group->close();
  if (world.rank() == 0) {
    fmt::print("{:>6} x {:>5} -> {:>5} | {:>11.1f} | {:>9.2f} us | {:>9.2f} us | {:>9.2f} us | {:>5.2f}\n", rows, in,
               out, 1 / median(step_times), 1e6 * median(step_times), 1e6 * median(product_times),
               1e6 * median(reduce_times), median(ratios));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const ddp::World world;
  if ((argc - 1) % 3 != 0) {
    if (world.rank() == 0) fmt::print(stderr, "usage: step_bench [ROWS IN OUT]...\n");
    return 2;
  }
  std::vector<Shape> shapes{{20, 10, 10}, {64, 256, 256}, {1024, 1024, 1024}, {100'000, 256, 1}};
  if (argc > 1) shapes.clear();
  for (int i = 1; i + 2 < argc; i += 3) {
    shapes.push_back({std::atoll(argv[i]), std::atoll(argv[i + 1]), std::atoll(argv[i + 2])});
  }
  if (world.rank() == 0) {
    fmt::print("{} ranks, {}; medians of the slowest rank\n", world.size(), ddp::make_cpu_device()->description());
    fmt::print("  rows x   in ->   out |     steps/s |         step |     products |   all-reduce | ratio\n");
  }
  for (const Shape& shape : shapes) measure(world, shape);
  return 0;
}
