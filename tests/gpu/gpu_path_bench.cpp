// A path of L2 penalties of multinomial logistic regression, by L-BFGS to 1e-6 of each optimum, against the time of
// its matrix products alone.
//   mpirun -np 1 build/gpu_path_bench [--device=cpu] [--json=FILE] [--small] [ROWS IN CLASSES PENALTIES]
// Without sizes those of embeddings of ImageNet; --small: to try the program itself.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/device/select.hpp>
#include <linear_ddp/training/full_batch.hpp>

namespace {

using Clock = std::chrono::steady_clock;

/// Of the value at an optimum: how far above it a search may end.
constexpr double most_above = 1e-6;

struct Sizes {
  std::int64_t rows = 1'280'000, in = 768, classes = 1000, penalties = 13;
};

/// Normal values around the centre of the row's class, so near to other centres that no layer tells all rows' classes.
struct Rows {
  ddp::Buffer<float> x, target;
  ddp::FullBatch batch;
};

std::vector<float> normal_values(std::int64_t numel, unsigned seed, float deviation) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(static_cast<std::size_t>(numel));
  for (float& value : values) value = normal(engine);
  return values;
}

/// This rank's share. A row's noise is a piece of the same megabytes: to draw gigabytes takes longer than the
/// benchmark.
Rows make_rows(const ddp::World& world, ddp::Device& device, const Sizes& sizes) {
  constexpr std::int64_t most_at_once = 8192;
  const std::int64_t in = sizes.in, rows = sizes.rows / world.size();
  const auto centres = normal_values(sizes.classes * in, 1, 0.15F), noise = normal_values((1 << 20) + in, 2, 1);
  std::mt19937 engine(static_cast<unsigned>(3 + world.rank()));
  std::uniform_int_distribution<std::int64_t> class_of_row(0, sizes.classes - 1), place_of_noise(0, 1 << 20);
  Rows made{ddp::Buffer<float>(device, rows * in), ddp::Buffer<float>(device, rows), {}};
  std::vector<float> x(static_cast<std::size_t>(most_at_once * in)), target(static_cast<std::size_t>(most_at_once));
  for (std::int64_t first = 0; first < rows; first += most_at_once) {
    const std::int64_t count = std::min(most_at_once, rows - first);
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t of_class = class_of_row(engine);
      const float* of_row = noise.data() + place_of_noise(engine);
      target[static_cast<std::size_t>(row)] = static_cast<float>(of_class);
      std::transform(of_row, of_row + in, centres.data() + of_class * in, x.data() + row * in, std::plus<>());
    }
    device.upload(made.x.data() + first * in, x.data(), static_cast<std::size_t>(count * in) * sizeof(float));
    device.upload(made.target.data() + first, target.data(), static_cast<std::size_t>(count) * sizeof(float));
  }
  const std::int64_t all = rows * world.size();
  made.batch = {{{rows, made.x.data(), made.target.data()}}, all, static_cast<double>(all)};
  return made;
}

/// Of the slowest rank, until its device has done all of it.
template <class Work>
double seconds_of(const ddp::World& world, ddp::Device& device, const Work& work) {
  device.synchronize();
  MPI_Barrier(world.comm());
  const auto begin = Clock::now();
  work();
  device.synchronize();
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, world.comm());
  return seconds;
}

/// Seconds of an evaluation's two products for one of several heads side by side, as twice those of the first.
double seconds_of_products(const ddp::World& world, ddp::Device& device, const Rows& rows, const Sizes& sizes) {
  const ddp::Batch& batch = rows.batch.pieces[0];
  const std::int64_t width = sizes.penalties * sizes.classes;
  const std::int64_t tile = std::clamp<std::int64_t>((std::int64_t{64} << 20) / width, 1, batch.rows);
  ddp::Buffer<float> weight(device, width * sizes.in), y(device, tile * width);
  const auto of_head = normal_values(sizes.classes * sizes.in, 1, 0.15F);  // zeros would cost a GPU less power
  for (std::int64_t head = 0; head < sizes.penalties; ++head) {
    device.upload(weight.data() + head * std::ssize(of_head), of_head.data(), of_head.size() * sizeof(float));
  }
  const auto forward = [&] {
    for (std::int64_t row = 0; row < batch.rows; row += tile) {
      device.linear_forward({std::min(tile, batch.rows - row), sizes.in, width, batch.x + row * sizes.in, weight.data(),
                             nullptr, y.data()});
    }
  };
  forward();  // makes plans, wakes the clocks
  return 2 * seconds_of(world, device, forward) / static_cast<double>(sizes.penalties);
}

ddp::LbfgsOptions searched_to(double gradient_of_value) {
  ddp::LbfgsOptions options;  // as the program's, for the gradient's size
  options.gradient_tolerance = 1e-6;
  options.gradient_tolerance_of_value = gradient_of_value;
  options.rounding = 1e-7;
  return options;
}

nlohmann::ordered_json measure(const ddp::World& world, ddp::Device& device, ddp::ProcessGroup& group,
                               const Sizes& sizes) {
  const Rows rows = make_rows(world, device, sizes);
  std::vector<double> l2;
  for (std::int64_t i = 0; i < sizes.penalties; ++i) l2.push_back(1e-6 * std::pow(10, 0.5 * static_cast<double>(i)));
  const double of_products = seconds_of_products(world, device, rows, sizes);
  ddp::FullBatchObjective objective(device, group, {sizes.in, sizes.classes, true},
                                    {.kind = ddp::LossKind::cross_entropy}, rows.batch);
  std::vector<ddp::HeadSearch> path;
  const double seconds = seconds_of(world, device, [&] {
    const std::vector<double> start(static_cast<std::size_t>(objective.numel()), 0);
    path = ddp::minimize_path(objective, l2, start, l2.size(), searched_to(4e-6));
  });

  std::int64_t evaluations = 0, together = 0;
  for (const ddp::HeadSearch& head : path) {
    evaluations += head.result.last.evaluations;
    together = std::max(together, head.result.last.evaluations);
  }
  nlohmann::ordered_json row{{"shape", {rows.batch.rows, sizes.in, sizes.classes}},
                             {"ranks", world.size()},
                             {"device", device.description()},
                             {"penalties", sizes.penalties},
                             {"seconds", seconds},
                             {"evaluations", evaluations},
                             {"evaluations_together", together},
                             {"products_seconds", of_products * static_cast<double>(evaluations)},
                             {"ratio", seconds / (of_products * static_cast<double>(evaluations))}};
  std::vector<double> values;
  for (const ddp::HeadSearch& head : path) values.push_back(head.result.last.value);
  ddp::LbfgsOptions further = searched_to(1e-8);
  further.gradient_tolerance = 1e-9;
  further.max_iterations = 100;
  ddp::minimize_together(objective, path, further);
  double worst = 0;
  for (std::size_t i = 0; i < path.size(); ++i) worst = std::max(worst, values[i] / path[i].result.last.value - 1);
  row["above_optimum"] = worst;
  return row;
}

void run(const ddp::World& world, ddp::DeviceRequest request, const std::string& json, const Sizes& sizes) {
  const auto [device, reason] = ddp::select_device(world, request);
  ddp::Watchdog watchdog;
  const auto group = device->memory_is_host()
                         ? ddp::make_mpi_group(world, watchdog)
                         : ddp::make_nccl_group(world, *device, watchdog, std::chrono::seconds(60));
  const auto row = measure(world, *device, *group, sizes);
  group->close();
  if (world.rank() == 0) {
    fmt::print(
        "{} rank(s), {}: {} x {} -> {} classes, {} penalties: {:.2f} s; {} evaluations, {} of them one after another; "
        "their products alone {:.2f} s, ratio {:.2f}; at most {:.1e} above the optimum\n",
        world.size(), device->description(), row["shape"][0].get<std::int64_t>(), sizes.in, sizes.classes,
        sizes.penalties, row["seconds"].get<double>(), row["evaluations"].get<std::int64_t>(),
        row["evaluations_together"].get<std::int64_t>(), row["products_seconds"].get<double>(),
        row["ratio"].get<double>(), row["above_optimum"].get<double>());
    if (!json.empty() && !(std::ofstream(json) << row.dump() << std::endl)) ddp::fail("write " + json, "it failed");
  }
  if (!(row["above_optimum"].get<double>() <= most_above)) {
    ddp::fail("find the optima", fmt::format("one is {} above", row["above_optimum"].get<double>()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const ddp::World world;
  std::string json;
  Sizes sizes;
  std::vector<std::int64_t> given;
  auto request = ddp::DeviceRequest::cuda;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--json=")) {
      json = argument.substr(7);
    } else if (argument == "--device=cpu") {
      request = ddp::DeviceRequest::cpu;
    } else if (argument == "--small") {
      sizes = {200, 16, 4, 3};
    } else {
      given.push_back(std::atoll(argv[i]));
    }
  }
  if (given.size() == 4) sizes = {given[0], given[1], given[2], given[3]};
  try {
    run(world, request, json, sizes);
  } catch (const ddp::Error& error) {
    std::cerr << "gpu_path_bench: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
