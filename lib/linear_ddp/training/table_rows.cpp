#include <linear_ddp/training/table_rows.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <linear_ddp/data/feature_source.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/training/score_sums.hpp>
#include "linear_ddp/device/gemm.hpp"

namespace ddp {

LeastSquaresRows rows_of(const TableShare& share) {
  LeastSquaresRows rows;
  rows.rows = share.rows;
  rows.in = std::ssize(share.feature_names);
  rows.out = std::ssize(share.target_names);
  rows.each_block = [&share, out = rows.out](const std::function<void(const LeastSquaresRows::Block&)>& visit) {
    constexpr std::int64_t most_rows = 1024;  // products of larger blocks are no faster
    std::vector<double> read;
    for (std::int64_t row = 0; row < share.rows; row += most_rows) {
      const std::int64_t count = std::min(most_rows, share.rows - row);
      visit({count, own_features(share, row, count, read).data(), share.targets.data() + row * out,
             share.weights.empty() ? nullptr : share.weights.data() + row});
    }
  };
  return rows;
}

double total_weight(const World& world, const TableShare& share, std::span<const double> class_weight) {
  double sum = 0;
  for (std::size_t row = 0; std::cmp_less(row, share.rows); ++row) {
    const double own_class = class_weight.empty() ? 1.0 : class_weight[static_cast<std::size_t>(share.targets[row])];
    sum += own_class * (share.weights.empty() ? 1.0 : share.weights[row]);
  }
  all_reduce_sum(world, std::span(&sum, 1));
  return sum;
}

Scores evaluate(const World& world, const TableShare& share, std::span<const double> weight,
                std::span<const double> bias) {
  const LeastSquaresRows rows = rows_of(share);
  const auto out = static_cast<std::size_t>(rows.out);
  // Of each output: squares and amounts of the errors; sums of the targets, then squares of their deviations.
  std::vector<double> means(out + 1, 0.0), sums(3 * out, 0.0);
  const auto weight_of = [](const LeastSquaresRows::Block& block, std::int64_t row) {
    return block.weight == nullptr ? 1.0 : block.weight[row];
  };
  agree(world, [&] {
    rows.each_block([&](const LeastSquaresRows::Block& block) {
      for (std::int64_t row = 0; row < block.rows; ++row) {
        means[out] += weight_of(block, row);
        for (std::size_t o = 0; o < out; ++o) {
          means[o] += weight_of(block, row) * block.y[static_cast<std::size_t>(row) * out + o];
        }
      }
    });
  });
  all_reduce_sum(world, std::span(means));
  const double total_weight = means[out];
  for (double& mean : means) mean /= total_weight;
  agree(world, [&] {
    std::vector<double> told;
    rows.each_block([&](const LeastSquaresRows::Block& block) {
      told.resize(static_cast<std::size_t>(block.rows) * out);
      gemm::product_nt(block.rows, rows.out, rows.in, block.x, weight.data(), 0, told.data());
      for (std::int64_t row = 0; row < block.rows; ++row) {
        for (std::size_t o = 0; o < out; ++o) {
          const std::size_t at = static_cast<std::size_t>(row) * out + o;
          const double target = block.y[at], error = told[at] + (bias.empty() ? 0.0 : bias[o]) - target;
          sums[3 * o] += weight_of(block, row) * error * error;
          sums[3 * o + 1] += weight_of(block, row) * std::abs(error);
          sums[3 * o + 2] += weight_of(block, row) * (target - means[o]) * (target - means[o]);
        }
      }
    });
  });
  all_reduce_sum(world, std::span(sums));
  Scores scores;
  scores.rows = share.total_rows;
  for (std::size_t o = 0; o < out; ++o) {
    scores.targets.push_back(target_scores(sums[3 * o], sums[3 * o + 1], sums[3 * o + 2], total_weight, scores.rows));
    scores.loss += scores.targets.back().mse / static_cast<double>(out);
  }
  return scores;
}

}  // namespace ddp
