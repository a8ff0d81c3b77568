#include <fmt/format.h>
#include <fmt/ranges.h>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/preflight.hpp>
#include "bench.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "runtime.hpp"

namespace ddp::app {
namespace {

/// The smallest program, a layer that fits into cache, one that does not, one whose inputs are all that costs, and a
/// stack.
std::vector<BenchShape> shapes_of(const BenchOptions& options) {
  const TrainOptions& step = options.step;
  if (options.has_shape) {
    return {{step.batch_size.value_or(20),
             {.in = step.in, .out = step.out, .hidden = step.hidden, .activation = step.activation}}};
  }
  return {{20, {.in = 10, .out = 10}},
          {64, {.in = 256, .out = 256}},
          {1024, {.in = 1024, .out = 1024}},
          {100'000, {.in = 256, .out = 1}},
          {256, {.in = 256, .out = 10, .hidden = {512, 512, 512}}}};
}

std::vector<std::int64_t> sizes_of(const LinearShape& layers) {
  std::vector<std::int64_t> sizes{layers.in};
  sizes.insert(sizes.end(), layers.hidden.begin(), layers.hidden.end());
  sizes.push_back(layers.out);
  return sizes;
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", 1e6 * seconds);
  return seconds < 1 ? fmt::format("{:.2f} ms", 1e3 * seconds) : fmt::format("{:.2f} s", seconds);
}

std::string share_text(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

constexpr const char* columns = "{:<19}{:>10}{:>10}{:>10}{:>10}{:>12}{:>8}{:>9}{:>11}{:>10}{:>10}{:>10}{:>12}{:>10}";

std::string header() {
  return fmt::format(columns, "layers", "step", "steps/s", "rows/s", "backward", "all-reduce", "update", "overlap",
                     "products", "sum", "copy", "launch", "step/limit", "wire");
}

/// On one rank there is nothing to reduce, hide or send.
std::string row_of(const BenchShape& shape, const StepTimes& times, int ranks, std::int64_t wire_bytes) {
  const bool alone = ranks == 1;
  return fmt::format(columns, fmt::format("{}", fmt::join(sizes_of(shape.layers), "-")), time_text(times.step),
                     fmt::format("{:.3g}", 1 / times.step),
                     fmt::format("{:.3g}", static_cast<double>(shape.rows) * ranks / times.step),
                     share_text(times.backward / times.step), alone ? "-" : share_text(times.reduce / times.step),
                     share_text(times.update / times.step), alone ? "-" : share_text(times.overlap()),
                     time_text(times.products), alone ? "-" : time_text(times.sum), time_text(times.copy),
                     times.launch ? time_text(*times.launch) : "-", fmt::format("{:.2f}", times.ratio),
                     alone ? "-" : fmt::format("{} B", wire_bytes));
}

nlohmann::ordered_json json_of(const BenchJob& job, const BenchShape& shape, const StepTimes& times,
                               std::int64_t wire_bytes) {
  const TrainOptions& step = job.options.step;
  const int ranks = job.world.size();
  const auto us = [](double seconds) { return 1e6 * seconds; };
  nlohmann::ordered_json json{{"event", "bench"},
                              {"version", version()},
                              {"world_size", ranks},
                              {"device", job.device.kind()},
                              {"backend", job.group.backend()},
                              {"rows", shape.rows},
                              {"layers", sizes_of(shape.layers)},
                              {"activation", nullptr},
                              {"loss", step.loss()},
                              {"optimizer", step.optimizer},
                              {"compress", step.compression.text},
                              {"parameters", times.parameters},
                              {"rounds", job.options.rounds},
                              {"steps_per_s", 1 / times.step},
                              {"rows_per_s", static_cast<double>(shape.rows) * ranks / times.step},
                              {"step_us", us(times.step)},
                              {"backward_us", us(times.backward)},
                              {"all_reduce_us", us(times.reduce)},
                              {"update_us", us(times.update)},
                              {"products_us", us(times.products)},
                              {"sum_us", us(times.sum)},
                              {"copy_us", us(times.copy)},
                              {"launch_us", nullptr},
                              {"ratio", times.ratio},
                              {"backward_share", times.backward / times.step},
                              {"all_reduce_share", times.reduce / times.step},
                              {"update_share", times.update / times.step},
                              {"overlap", nullptr},
                              {"reduced_bytes", times.reduced_bytes},
                              {"wire_bytes", wire_bytes}};
  if (!shape.layers.hidden.empty()) json["activation"] = name_of(shape.layers.activation);
  if (times.launch) json["launch_us"] = us(*times.launch);
  if (ranks > 1) json["overlap"] = times.overlap();
  return json;
}

}  // namespace

void bench(const World& world, const BenchOptions& options, Watchdog& watchdog) {
  Console console(options.step.quiet || world.rank() != 0, open_metrics(world, options.json, false, "--json"));
  auto watch = std::make_unique<Watchdog::Watch>(watchdog, "start of the devices", 0);
  const SelectedDevice selected = select_device(world, options.step.device);
  Device& device = *selected.device;
  const std::string backend = agree(world, [&] { return choose_backend(options.step.backend, device); });
  Facts facts = run_facts(device, options.step);
  facts.emplace_back("--rounds", std::to_string(options.rounds));
  require_agreement(world, facts, "the ranks do not agree, so nothing was started",
                    "start the same program with the same options and libraries on every node");
  const auto group = make_group(backend, world, device, watchdog, options.step.timeout_s);
  watch.reset();
  console.line("linear_ddp",
               fmt::format("{}: {}, {}, backend {}", version(), describe_ranks(world), device.description(), backend));
  console.line("device", selected.reason);
  console.line("rows", header());
  const BenchJob job{world, device, *group, watchdog, options};
  bool first = true;
  for (const BenchShape& shape : shapes_of(options)) {
    const StepTimes times = time_step(job, shape);
    // What each rank sends in a ring: all but its own part of the values, once to add it up and once as sums.
    const auto wire_bytes =
        static_cast<std::int64_t>(2 * times.reduced_bytes * static_cast<std::uint64_t>(world.size() - 1) /
                                  static_cast<std::uint64_t>(world.size()));
    agree(world, [&] {
      console.line(std::to_string(shape.rows).c_str(), row_of(shape, times, world.size(), wire_bytes));
      const auto json = json_of(job, shape, times, wire_bytes);
      first ? console.start_event(json) : console.event(json);
    });
    first = false;
  }
  watch = std::make_unique<Watchdog::Watch>(watchdog, "release of the group", 0);
  group->close();
  agree(world, [] {});  // as after a training
  watch.reset();
  watch = std::make_unique<Watchdog::Watch>(watchdog, "release of the devices", 0);
}

}  // namespace ddp::app
