// A full-batch evaluation (loss and gradient, all-reduced) against its two bare matrix products, in one run.
//   mpirun -np 2 build/evaluation_bench [rows in classes heads]
// The rows are shared out over the ranks. Rounds alternate; medians of the slowest rank's times are compared.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include <linear_ddp/data/resident_rows.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/training/full_batch.hpp>
#include "linear_ddp/device/gemm.hpp"

namespace {

/// Seconds of one call, the slowest rank's.
template <class Work>
double seconds_of(const Work& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  work();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const ddp::World world;
  const auto argument = [&](int i, std::int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  const std::int64_t rows = argument(1, 20000), in = argument(2, 512), classes = argument(3, 100),
                     heads = argument(4, 1);
  const std::int64_t own =
      ddp::share_begin(rows, world.rank() + 1, world.size()) - ddp::share_begin(rows, world.rank(), world.size());
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(own * in)), target(static_cast<std::size_t>(own));
  for (float& value : x) value = normal(engine);
  for (float& value : target) value = static_cast<float>(engine() % static_cast<unsigned>(classes));

  const auto device = ddp::make_cpu_device();
  ddp::Watchdog watchdog(std::chrono::seconds(120), [](const std::string&) { std::abort(); });
  const auto group = ddp::make_mpi_group(world, watchdog);
  ddp::FullBatchObjective objective(*device, *group, {in, classes, true}, {.kind = ddp::LossKind::cross_entropy},
                                    {{{own, x.data(), target.data()}}, rows, static_cast<double>(rows)});
  std::vector<std::vector<double>> points(static_cast<std::size_t>(heads)), gradients = points;
  std::vector<ddp::FullBatchObjective::Head> all;
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].assign(static_cast<std::size_t>(objective.numel()), 0.01);
    gradients[i] = points[i];
    all.push_back({points[i], gradients[i], 1e-3});
  }
  const std::int64_t out = classes * heads;
  std::vector<float> weight(static_cast<std::size_t>(out * in), 0.01F), y(static_cast<std::size_t>(own * out)),
      gradient = weight;
  const auto products = [&] {
    ddp::gemm::product_nt(own, out, in, x.data(), weight.data(), 0, y.data());
    ddp::gemm::product_tn(out, in, own, y.data(), x.data(), 0, gradient.data());
  };
  std::vector<double> evaluation_times, product_times, ratios;
  for (int round = 0; round < 25; ++round) {
    evaluation_times.push_back(seconds_of([&] { objective.evaluate(all); }));
    product_times.push_back(seconds_of(products));
    ratios.push_back(evaluation_times.back() / product_times.back());
  }
  group->close();
  if (world.rank() == 0) {
    fmt::print("{} ranks, {} x {} -> {} classes, {} heads: evaluation {:.1f} ms, products {:.1f} ms, ratio {:.2f}\n",
               world.size(), rows, in, classes, heads, 1e3 * median(evaluation_times), 1e3 * median(product_times),
               median(ratios));
  }
  return 0;
}
