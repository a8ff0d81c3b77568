#include <linear_ddp/optim/scaled_columns.hpp>

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/base/error.hpp>
#include <linear_ddp/device/gemm.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/launch/mpi_check.hpp>

namespace ddp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using RowMajorView = Eigen::Map<const RowMajorMatrix>;

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Near a column's mean; of equal values, exactly the value.
VectorXd guess_of_means(const RowMajorView& block) {
  const VectorXd low = block.colwise().minCoeff(), high = block.colwise().maxCoeff();
  const VectorXd mean = block.colwise().mean();
  return mean.cwiseMax(low).cwiseMin(high);
}

/// Of one rank's rows: sums of deviations from a guess, and of their products.
class OwnMoments {
 public:
  OwnMoments(const LeastSquaresRows& rows, bool bias)
      : bias_(bias),
        guess_x_(VectorXd::Zero(rows.in)),
        guess_y_(VectorXd::Zero(rows.out)),
        sum_x_(VectorXd::Zero(rows.in)),
        sum_y_(VectorXd::Zero(rows.out)),
        xx_(RowMajorMatrix::Zero(rows.in, rows.in)),
        xy_(RowMajorMatrix::Zero(rows.in, rows.out)) {}

  void add(const LeastSquaresRows::Block& block) {
    const Index in = xx_.rows(), out = xy_.cols();
    const RowMajorView x(block.x, block.rows, in), y(block.y, block.rows, out);
    if (rows_ == 0 && bias_) {
      guess_x_ = guess_of_means(x);
      guess_y_ = guess_of_means(y);
    }
    x_ = x.rowwise() - guess_x_.transpose();
    y_ = y.rowwise() - guess_y_.transpose();
    if (block.weight == nullptr) {
      weight_ += static_cast<double>(block.rows);
    } else {
      const VectorXd roots = Eigen::Map<const VectorXd>(block.weight, block.rows).cwiseSqrt();
      weight_ += roots.squaredNorm();
      x_.array().colwise() *= roots.array();
      y_.array().colwise() *= roots.array();
      if (bias_) {
        sum_x_ += x_.transpose() * roots;
        sum_y_ += y_.transpose() * roots;
      }
    }
    if (bias_ && block.weight == nullptr) {
      sum_x_ += x_.colwise().sum().transpose();
      sum_y_ += y_.colwise().sum().transpose();
    }
    gemm::add_gram(in, block.rows, x_.data(), xx_.data());
    gemm::product_tn(in, out, block.rows, x_.data(), y_.data(), 1, xy_.data());
    rows_ += block.rows;
  }

  /// Collective.
  Moments of_all_ranks(const World& world) {
    Moments all;
    all.rows = rows_;
    all_reduce_sum(world, std::span(&all.rows, 1));
    all.xx = xx_.triangularView<Eigen::Lower>();
    all.xy = xy_;
    VectorXd own_x = guess_x_, own_y = guess_y_;
    if (bias_ && weight_ > 0) {
      all.xx -= sum_x_ * sum_x_.transpose() / weight_;
      all.xy -= sum_x_ * sum_y_.transpose() / weight_;
      own_x += sum_x_ / weight_;
      own_y += sum_y_ / weight_;
    }
    const Index in = xx_.rows(), out = xy_.cols();
    VectorXd sums(1 + in + out);
    sums << weight_, weight_ * own_x, weight_ * own_y;
    sum_over_ranks(world, sums);
    all.weight = sums[0];
    all.mean_x = sums.segment(1, in) / all.weight;
    all.mean_y = sums.tail(out) / all.weight;
    if (bias_ && weight_ > 0) {
      const VectorXd apart_x = own_x - all.mean_x, apart_y = own_y - all.mean_y;
      all.xx += weight_ * apart_x * apart_x.transpose();
      all.xy += weight_ * apart_x * apart_y.transpose();
    }
    sum_over_ranks(world, all.xx);
    sum_over_ranks(world, all.xy);
    all.xx = MatrixXd(all.xx.selfadjointView<Eigen::Lower>());
    return all;
  }

 private:
  bool bias_;
  std::int64_t rows_ = 0;
  double weight_ = 0;
  VectorXd guess_x_, guess_y_, sum_x_, sum_y_;
  RowMajorMatrix xx_, xy_;  ///< of xx the lower triangle
  RowMajorMatrix x_, y_;    ///< of a block
};

/// What is left of a constant column is the rounding of its mean.
void clear_constants(Moments& moments) {
  for (Index column = 0; column < moments.xx.rows(); ++column) {
    const double noise = 8 * epsilon * moments.mean_x[column];
    if (moments.xx(column, column) > noise * noise * moments.weight) continue;
    moments.xx.row(column).setZero();
    moments.xx.col(column).setZero();
    moments.xy.row(column).setZero();
  }
}

}  // namespace

Moments moments_of(const World& world, const LeastSquaresRows& rows, bool bias) {
  OwnMoments own = agree(world, [&] {
    OwnMoments sums(rows, bias);
    rows.each_block([&](const LeastSquaresRows::Block& block) { sums.add(block); });
    return sums;
  });
  Moments all = own.of_all_ranks(world);
  for (Index column = 0; column < rows.in; ++column) {
    if (std::isfinite(all.xx(column, column)) && all.xy.row(column).allFinite()) continue;
    throw AgreedError(Status::wrong_use,
                      fmt::format("feature {} (from 0), or a target, has values so large that their squares overflow; "
                                  "rescale it",
                                  column));
  }
  if (bias) clear_constants(all);
  return all;
}

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
  constexpr std::size_t piece = 1 << 24;
  for (std::size_t begin = 0; begin < values.size(); begin += piece) {
    const auto some = values.subspan(begin, std::min(piece, values.size() - begin));
    all_reduce_sum(world, some);
    check_mpi(MPI_Bcast(some.data(), static_cast<int>(some.size()), MPI_DOUBLE, 0, world.comm()),
              "let all ranks have the same sums");
  }
}

}  // namespace ddp
