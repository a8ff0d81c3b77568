// ridge_path_bench TABLE FOLDS L2...: seconds in which the ridge penalties of a table in memory are scored, by
// consecutive folds as scikit-learn's KFold has them, and in which all rows are then fitted with the best; then the
// mean r2 of each. ridge_speed compares them.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <numeric>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/table.hpp>
#include <linear_ddp/device/select.hpp>
#include <linear_ddp/optim/ridge_path.hpp>
#include <linear_ddp/training/table_rows.hpp>

int main(int argc, char** argv) try {
  using Seconds = std::chrono::duration<double>;
  const ddp::World world;
  if (argc < 4) throw ddp::UseError("ridge_path_bench TABLE FOLDS L2...");
  const auto host = select_device(world, ddp::DeviceRequest::cpu);  // keeps the BLAS from threads of its own
  const auto share = ddp::read_table(world, argv[1], {}, {});
  ddp::LeastSquaresRows rows = rows_of(share);
  const int folds = std::atoi(argv[2]);
  std::vector<double> l2;
  for (int i = 3; i < argc; ++i) l2.push_back(std::atof(argv[i]));
  std::vector<int> all(static_cast<std::size_t>(folds)), fold;
  std::iota(all.begin(), all.end(), 0);
  const std::int64_t longer = share.total_rows % folds, short_rows = share.total_rows / folds;
  for (std::int64_t row = share.first_row; row < share.first_row + share.rows; ++row) {
    const std::int64_t in_longer = longer * (short_rows + 1);
    fold.push_back(
        static_cast<int>(row < in_longer ? row / (short_rows + 1) : longer + (row - in_longer) / short_rows));
  }

  MPI_Barrier(world.comm());
  const auto begin = std::chrono::steady_clock::now();
  const ddp::RidgePath path(world, rows, fold, folds);
  const auto scores = path.scores(all, l2, true);
  const auto scored = std::chrono::steady_clock::now();
  std::vector<double> r2(l2.size(), 0);
  for (const auto& of_fold : scores) {
    for (std::size_t i = 0; i < l2.size(); ++i) r2[i] += of_fold[i].r2 / folds;
  }
  const auto best = static_cast<std::size_t>(std::max_element(r2.begin(), r2.end()) - r2.begin());
  const double lambda = l2[best] / 2 * static_cast<double>(share.total_rows * rows.out);
  rows.moments = path.moments(all, true);
  const auto solution = solve_least_squares(world, rows, {.ridge = lambda});
  const auto end = std::chrono::steady_clock::now();
  if (world.rank() == 0) {
    fmt::print("{:.4f} {:.4f}\n", Seconds(scored - begin).count(), Seconds(end - scored).count());
    for (const double value : r2) fmt::print("{} ", value);
    fmt::print("\n{} refinements\n", solution.refinements);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
