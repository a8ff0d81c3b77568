// The all-reduce of the CPU's process group against MPI_Allreduce, in place, in one run.
//   mpirun -np 2 build/all_reduce_bench [any-memory]
// Rounds alternate between the three; medians of the slowest rank's times are compared, so noise hits all alike. The
// values lie where gradients do, in huge pages when they are many, or else in pages of the other size.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <linear_ddp/comm/process_group.hpp>

namespace {

using Clock = std::chrono::steady_clock;

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

void measure(const ddp::World& world, ddp::ProcessGroup& group, std::span<float> values) {
  const auto mpi = [&](std::size_t piece) {
    for (std::size_t at = 0; at < values.size(); at += piece) {
      MPI_Allreduce(MPI_IN_PLACE, values.data() + at, static_cast<int>(std::min(piece, values.size() - at)), MPI_FLOAT,
                    MPI_SUM, MPI_COMM_WORLD);
    }
  };
  const auto in_one_call = [&] { mpi(values.size()); };
  const auto in_pieces = [&] { mpi((2 << 20) / sizeof(float)); };
  const auto ours = [&] { group.all_reduce(values); };

  const double estimate = seconds_of(3, in_one_call);
  const int calls = static_cast<int>(std::clamp(0.01 / estimate, 1.0, 10'000.0));
  std::vector<double> call_times, piece_times, our_times, ratios;
  for (int round = 0; round < 31; ++round) {
    call_times.push_back(seconds_of(calls, in_one_call));
    piece_times.push_back(seconds_of(calls, in_pieces));
    our_times.push_back(seconds_of(calls, ours));
    ratios.push_back(our_times.back() / std::min(call_times.back(), piece_times.back()));
  }
  if (world.rank() == 0) {
    fmt::print("{:>11} | {:>12.2f} us | {:>12.2f} us | {:>12.2f} us | {:>5.2f}\n", values.size_bytes(),
               1e6 * median(call_times), 1e6 * median(piece_times), 1e6 * median(our_times), median(ratios));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const ddp::World world;
  const bool any_memory = argc == 2 && std::string_view(argv[1]) == "any-memory";
  if (argc > 1 && !any_memory) {
    if (world.rank() == 0) fmt::print(stderr, "usage: all_reduce_bench [any-memory]\n");
    return 2;
  }
  // As the program does: each collective is marked for the watchdog.
  ddp::Watchdog watchdog(std::chrono::seconds(120), [](const std::string&) { std::abort(); });
  const auto group = ddp::make_mpi_group(world, watchdog);
  const auto device = ddp::make_cpu_device();
  if (world.rank() == 0) {
    fmt::print("{} ranks; medians of the slowest rank; ratio: ours to the better of MPI's\n", world.size());
    fmt::print("      bytes |   in one call   | in pieces of 2M |       ours      | ratio\n");
  }
  for (const std::size_t numel : {128U, 1024U, 16'384U, 262'144U, 1'048'576U, 6'553'600U, 26'214'400U}) {
    std::vector<float> other(any_memory ? numel : 0);
    ddp::Buffer<float> as_gradients(*device, static_cast<std::int64_t>(any_memory ? 0 : numel),
                                    ddp::MemoryUse::communication);
    void* registration =
        any_memory ? nullptr : group->register_memory(as_gradients.data(), as_gradients.span().size_bytes());
    measure(world, *group, any_memory ? std::span(other) : as_gradients.span());
    group->deregister_memory(registration);
  }
  group->close();
  return 0;
}
