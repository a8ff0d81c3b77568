// parse_bench TABLE [TIMES]: seconds that one rank takes to read a table (arrays: into the memory that is trained on),
// one line a time; parse_speed compares them.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/data/table.hpp>

int main(int argc, char** argv) try {
  const ddp::World world;
  if (argc < 2) throw ddp::UseError("parse_bench TABLE [TIMES]");
  for (int time = 0; time < (argc > 2 ? std::atoi(argv[2]) : 1); ++time) {
    const auto begin = std::chrono::steady_clock::now();
    ddp::ColumnSelection selection;
    selection.leaves_features = true;
    const auto share = ddp::read_table(world, argv[1], {}, selection);
    if (share.source) (void)ddp::gather_dataset(world, share, ddp::Residence::memory);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    fmt::print("{:.4f} s, {} rows\n", seconds.count(), share.rows);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
