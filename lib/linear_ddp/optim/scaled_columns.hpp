#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <span>

#include <linear_ddp/launch/world.hpp>
#include <linear_ddp/optim/least_squares.hpp>

/// What the ways to solve least squares have in common.
namespace ddp {

using RowMajorMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

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
