#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <linear_ddp/launch/world.hpp>
#include <linear_ddp/optim/least_squares.hpp>

/// What the ways to solve least squares have in common.
namespace ddp {

using RowMajorMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Means, and sums of products of deviations from them, of all ranks' rows, weighted; without a bias the deviations are
/// from 0. The same bits on all ranks.
struct Moments {
  double weight = 0;               ///< of all rows
  std::int64_t rows = 0;           ///< of all ranks
  Eigen::VectorXd mean_x, mean_y;  ///< [in], [out]
  Eigen::MatrixXd xx, xy;          ///< [in, in], [in, out]
  /// [out]: the targets' means, also without a bias, and the sums of squares of deviations from those.
  Eigen::VectorXd average_y, yy;
};

/// Collective, in one pass and without a difference of large sums: each rank's deviations are from a guess of its own,
/// then from its means, then from all ranks' (Chan, Golub, LeVeque, 1979). Throws AgreedError when squares overflow.
[[nodiscard]] Moments moments_of(const World& world, const LeastSquaresRows& rows, bool bias);

/// The same of each part of the rows, in one pass over them; `part` has that of each of this rank's rows.
[[nodiscard]] std::vector<Moments> moments_of_parts(const World& world, const LeastSquaresRows& rows,
                                                    std::span<const int> part, int parts, bool bias);

/// Calls visit(x - mean, y - mean), each row times the root of its weight, for this rank's rows, a block at a time.
void each_deviation(const LeastSquaresRows& rows, const Eigen::VectorXd& mean_x, const Eigen::VectorXd& mean_y,
                    const std::function<void(const RowMajorMatrix& x, const RowMajorMatrix& y)>& visit);

/// For each column the power of 2 nearest to 1 / its norm, by which it is multiplied without rounding; 0 for a norm of
/// 0.
[[nodiscard]] Eigen::VectorXd scales_of(const Eigen::VectorXd& squares);

/// The largest singular value beside the smallest of an upper triangle, by power iterations with it and its inverse.
[[nodiscard]] double condition_of(const Eigen::MatrixXd& triangle);

/// Collective. The sum of the ranks' values, the same bits on all ranks.
void sum_over_ranks(const World& world, std::span<double> values);
template <class Derived>
void sum_over_ranks(const World& world, Eigen::PlainObjectBase<Derived>& values) {
  sum_over_ranks(world, std::span(values.data(), static_cast<std::size_t>(values.size())));
}

}  // namespace ddp
