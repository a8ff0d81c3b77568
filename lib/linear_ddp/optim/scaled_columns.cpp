#include <linear_ddp/optim/scaled_columns.hpp>

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/launch/mpi_check.hpp>

namespace ddp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using RowMajorView = Eigen::Map<const RowMajorMatrix>;

}  // namespace

void each_deviation(const LeastSquaresRows& rows, const VectorXd& mean_x, const VectorXd& mean_y,
                    const std::function<void(const RowMajorMatrix& x, const RowMajorMatrix& y)>& visit) {
  RowMajorMatrix x, y;
  rows.each_block([&](const LeastSquaresRows::Block& block) {
    x = RowMajorView(block.x, block.rows, rows.in).rowwise() - mean_x.transpose();
    y = RowMajorView(block.y, block.rows, rows.out).rowwise() - mean_y.transpose();
    if (block.weight != nullptr) {
      const Eigen::ArrayXd roots = Eigen::Map<const VectorXd>(block.weight, block.rows).array().sqrt();
      x.array().colwise() *= roots;
      y.array().colwise() *= roots;
    }
    visit(x, y);
  });
}

VectorXd scales_of(const VectorXd& squares) {
  return squares.unaryExpr(
      [](double square) { return square > 0 ? std::exp2(-std::round(std::log2(square) / 2)) : 0.0; });
}

double condition_of(const MatrixXd& triangle) {
  if (triangle.rows() == 0) return 1;
  if (triangle.diagonal().cwiseAbs().minCoeff() == 0) return std::numeric_limits<double>::infinity();
  const auto upper = triangle.triangularView<Eigen::Upper>();
  const auto largest_factor = [&](const auto& multiply) {
    VectorXd v = VectorXd::LinSpaced(triangle.rows(), 1, 2).normalized();  // no right angle with what is looked for
    double factor = 0;
    for (int i = 0; i < 30; ++i) {
      v = multiply(v);
      factor = v.norm();
      if (!(factor > 0) || !std::isfinite(factor)) return factor;
      v /= factor;
    }
    return factor;
  };
  const double largest = largest_factor([&](const VectorXd& v) { return VectorXd(upper.transpose() * (upper * v)); });
  const double inverse =
      largest_factor([&](const VectorXd& v) { return VectorXd(upper.solve(upper.transpose().solve(v))); });
  return std::sqrt(largest) * std::sqrt(inverse);
}

void sum_over_ranks(const World& world, std::span<double> values) {
  constexpr std::size_t piece = 1 << 19;  // 4 MB: Open MPI is slower with more at a time
  for (std::size_t begin = 0; begin < values.size(); begin += piece) {
    const auto some = values.subspan(begin, std::min(piece, values.size() - begin));
    all_reduce_sum(world, some);
    check_mpi(MPI_Bcast(some.data(), static_cast<int>(some.size()), MPI_DOUBLE, 0, world.comm()),
              "let all ranks have the same sums");
  }
}

}  // namespace ddp
