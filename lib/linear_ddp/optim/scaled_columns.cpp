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
        yy_(VectorXd::Zero(rows.out)),
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
      if (bias_) sum_x_ += x_.transpose() * roots;
      sum_y_ += y_.transpose() * roots;
    }
    if (block.weight == nullptr) {
      if (bias_) sum_x_ += x_.colwise().sum().transpose();
      sum_y_ += y_.colwise().sum().transpose();
    }
    yy_ += y_.colwise().squaredNorm().transpose();
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
    all.yy = yy_;
    VectorXd own_x = guess_x_, own_y = guess_y_;
    if (weight_ > 0) {
      own_y += sum_y_ / weight_;
      all.yy -= sum_y_.cwiseAbs2() / weight_;
    }
    if (bias_ && weight_ > 0) {
      all.xx -= sum_x_ * sum_x_.transpose() / weight_;
      all.xy -= sum_x_ * sum_y_.transpose() / weight_;
      own_x += sum_x_ / weight_;
    }
    const Index in = xx_.rows(), out = xy_.cols();
    VectorXd sums(1 + in + out);
    sums << weight_, weight_ * own_x, weight_ * own_y;
    sum_over_ranks(world, sums);
    all.weight = sums[0];
    const double divisor = all.weight > 0 ? all.weight : 1;  // a part may have no rows
    all.mean_x = sums.segment(1, in) / divisor;
    all.average_y = sums.tail(out) / divisor;
    all.mean_y = bias_ ? all.average_y : VectorXd::Zero(out);
    const VectorXd apart_x = own_x - all.mean_x, apart_y = own_y - all.average_y;
    all.yy += weight_ * apart_y.cwiseAbs2();
    if (bias_ && weight_ > 0) {
      all.xx += weight_ * apart_x * apart_x.transpose();
      all.xy += weight_ * apart_x * apart_y.transpose();
    }
    sum_over_ranks(world, all.xx);
    sum_over_ranks(world, all.xy);
    sum_over_ranks(world, all.yy);
    all.xx = MatrixXd(all.xx.selfadjointView<Eigen::Lower>());
    return all;
  }

 private:
  bool bias_;
  std::int64_t rows_ = 0;
  double weight_ = 0;
  VectorXd guess_x_, guess_y_, sum_x_, sum_y_, yy_;
  RowMajorMatrix xx_, xy_;  ///< of xx the lower triangle
  RowMajorMatrix x_, y_;    ///< of a block
};

/// The rows of one part, from blocks that have some of several.
class PartRows {
 public:
  PartRows(const LeastSquaresRows& rows, bool bias) : in_(rows.in), out_(rows.out), moments_(rows, bias) {}

  void add(const LeastSquaresRows::Block& block, std::int64_t row) {
    x_.insert(x_.end(), block.x + row * in_, block.x + (row + 1) * in_);
    y_.insert(y_.end(), block.y + row * out_, block.y + (row + 1) * out_);
    if (block.weight != nullptr) weight_.push_back(block.weight[row]);
    constexpr std::int64_t most_rows = 512;
    if (++rows_ == most_rows) flush();
  }
  void flush() {
    if (rows_ > 0) moments_.add({rows_, x_.data(), y_.data(), weight_.empty() ? nullptr : weight_.data()});
    rows_ = 0;
    x_.clear();
    y_.clear();
    weight_.clear();
  }
  OwnMoments& moments() { return moments_; }

 private:
  std::int64_t in_, out_, rows_ = 0;
  std::vector<double> x_, y_, weight_;
  OwnMoments moments_;
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

Moments finished(const World& world, const LeastSquaresRows& rows, OwnMoments& own, bool bias) {
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

}  // namespace

Moments moments_of(const World& world, const LeastSquaresRows& rows, bool bias) {
  OwnMoments own = agree(world, [&] {
    OwnMoments sums(rows, bias);
    rows.each_block([&](const LeastSquaresRows::Block& block) { sums.add(block); });
    return sums;
  });
  return finished(world, rows, own, bias);
}

std::vector<Moments> moments_of_parts(const World& world, const LeastSquaresRows& rows, std::span<const int> part,
                                      int parts, bool bias) {
  auto own = agree(world, [&] {
    std::vector<PartRows> sums(static_cast<std::size_t>(parts), PartRows(rows, bias));
    const int* next = part.data();
    rows.each_block([&](const LeastSquaresRows::Block& block) {
      for (std::int64_t row = 0; row < block.rows; ++row) sums.at(static_cast<std::size_t>(*next++)).add(block, row);
    });
    for (PartRows& one : sums) one.flush();
    return sums;
  });
  std::vector<Moments> all;
  for (PartRows& one : own) all.push_back(finished(world, rows, one.moments(), bias));
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
  constexpr std::size_t piece = (std::size_t{2} << 20) / sizeof(double);  // MPI was seen to be slow beyond 4 MB
  for (std::size_t begin = 0; begin < values.size(); begin += piece) {
    const auto some = values.subspan(begin, std::min(piece, values.size() - begin));
    all_reduce_sum(world, some);
    check_mpi(MPI_Bcast(some.data(), static_cast<int>(some.size()), MPI_DOUBLE, 0, world.comm()),
              "let all ranks have the same sums");
  }
}

}  // namespace ddp
