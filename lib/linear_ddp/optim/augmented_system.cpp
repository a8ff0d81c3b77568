#include <linear_ddp/optim/augmented_system.hpp>

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/base/double_double.hpp>
#include <linear_ddp/launch/mpi_check.hpp>

namespace ddp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;

/// Column-major, as Eigen's.
class DoubleDoubleMatrix {
 public:
  DoubleDoubleMatrix(Index rows, Index columns) : rows_(rows), values_(static_cast<std::size_t>(rows * columns)) {}
  [[nodiscard]] DoubleDouble& operator()(Index row, Index column) {
    return values_[static_cast<std::size_t>(column * rows_ + row)];
  }
  [[nodiscard]] const DoubleDouble& operator()(Index row, Index column) const {
    return values_[static_cast<std::size_t>(column * rows_ + row)];
  }
  void add(const MatrixXd& change) {
    for (Index i = 0; i < change.size(); ++i) {
      auto& value = values_[static_cast<std::size_t>(i)];
      value = value + DoubleDouble{change.data()[i], 0};
    }
  }
  [[nodiscard]] MatrixXd rounded(Index columns) const {
    MatrixXd result(rows_, columns);
    for (Index i = 0; i < result.size(); ++i) result.data()[i] = values_[static_cast<std::size_t>(i)].high;
    return result;
  }

 private:
  Index rows_;
  std::vector<DoubleDouble> values_;
};

/// b - r - A x
MatrixXd first_residual(const MatrixXd& a, const MatrixXd& b, const DoubleDoubleMatrix& x,
                        const DoubleDoubleMatrix& r) {
  MatrixXd residual(b.rows(), b.cols());
  for (Index side = 0; side < b.cols(); ++side) {
    for (Index row = 0; row < b.rows(); ++row) {
      const DoubleDouble& own = r(row, side);
      DoubleDouble sum = DoubleDouble{b(row, side), 0} + DoubleDouble{-own.high, -own.low};
      for (Index column = 0; column < a.cols(); ++column) sum = sum + (-a(row, column)) * x(column, side);
      residual(row, side) = sum.high;
    }
  }
  return residual;
}

/// Collective. c - Aᵀ r: the ranks' sums are added in their order.
MatrixXd second_residual(const World& world, const MatrixXd& a, const MatrixXd& c, const DoubleDoubleMatrix& r) {
  const auto numel = static_cast<std::size_t>(c.size());
  std::vector<DoubleDouble> own(numel);
  for (Index side = 0; side < c.cols(); ++side) {
    for (Index column = 0; column < a.cols(); ++column) {
      DoubleDouble sum;
      for (Index row = 0; row < a.rows(); ++row) sum = sum + (-a(row, column)) * r(row, side);
      own[static_cast<std::size_t>(side * a.cols() + column)] = sum;
    }
  }
  std::vector<DoubleDouble> all(numel * static_cast<std::size_t>(world.size()));
  static_assert(sizeof(DoubleDouble) == 2 * sizeof(double));
  const int count = narrow<int>(2 * numel, "the number of values of a residual");
  check_mpi(MPI_Allgather(own.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, world.comm()),
            "gather the ranks' residuals");
  MatrixXd residual(c.rows(), c.cols());
  for (std::size_t i = 0; i < numel; ++i) {
    DoubleDouble sum{c.data()[i], 0};
    for (std::size_t at = i; at < all.size(); at += numel) sum = sum + all[at];
    residual.data()[i] = sum.high;
  }
  return residual;
}

/// The largest correction beside its value. Values at 0, or so small that they may be, count beside the largest one.
double largest_change(const MatrixXd& change, const MatrixXd& x) {
  double largest = 0;
  for (Index side = 0; side < x.cols(); ++side) {
    const double least = x.col(side).cwiseAbs().maxCoeff() * 1e-30;
    for (Index i = 0; i < x.rows(); ++i) {
      if (change(i, side) == 0) continue;
      largest = std::max(largest, std::abs(change(i, side)) / std::max(std::abs(x(i, side)), least));
    }
  }
  return largest;
}

}  // namespace

RefinedSolution solve_augmented(const World& world, const MatrixXd& a, const TallSkinnyQr& qr, const MatrixXd& b,
                                const MatrixXd& c) {
  constexpr int most_rounds = 20;
  constexpr double half_a_place = std::numeric_limits<double>::epsilon() / 4;
  const auto triangle = qr.r().triangularView<Eigen::Upper>();
  DoubleDoubleMatrix x(a.cols(), b.cols()), r(a.rows(), b.cols());
  RefinedSolution solution;
  for (double before = std::numeric_limits<double>::infinity(); solution.rounds < most_rounds; ++solution.rounds) {
    const MatrixXd first = first_residual(a, b, x, r);
    const MatrixXd second = second_residual(world, a, c, r);
    const MatrixXd u = qr.multiply_transposed(first) - triangle.transpose().solve(second);
    const MatrixXd change = triangle.solve(u);
    r.add(first - qr.multiply(u));
    x.add(change);
    const double now = largest_change(change, x.rounded(b.cols()));
    solution.converged = now < half_a_place;
    // A last correction makes good what the one before has left in the second half of the digits.
    if (solution.converged && before < std::sqrt(half_a_place)) break;
    if (!(now < before / 2) && solution.rounds > 1) break;
    before = now;
  }
  solution.x = x.rounded(b.cols());
  solution.r = r.rounded(b.cols());
  return solution;
}

}  // namespace ddp
