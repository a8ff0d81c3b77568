#include <linear_ddp/optim/moments.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/device/gemm.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr Index most_gathered = 512;  // products of larger blocks are no faster

/// Near a column's mean; of equal values, exactly the value.
RowVectorXd guess_of_means(const Eigen::Ref<const RowMajorMatrix>& block) {
  const RowVectorXd low = block.colwise().minCoeff(), high = block.colwise().maxCoeff();
  return block.colwise().mean().cwiseMax(low).cwiseMin(high);
}

}  // namespace

OwnMoments::OwnMoments(std::int64_t in, std::int64_t out, bool bias)
    : bias_(bias),
      guess_x_(RowVectorXd::Zero(in)),
      guess_y_(RowVectorXd::Zero(out)),
      sum_x_(RowVectorXd::Zero(in)),
      sum_y_(RowVectorXd::Zero(out)),
      yy_(RowVectorXd::Zero(out)),
      xx_(in, in),
      xy_(in, out),
      x_(most_gathered, in),
      y_(most_gathered, out),
      roots_(most_gathered) {}

void OwnMoments::add(const LeastSquaresRows::Block& block, std::int64_t row) {
  std::copy_n(block.x + row * x_.cols(), x_.cols(), x_.data() + gathered_ * x_.cols());
  std::copy_n(block.y + row * y_.cols(), y_.cols(), y_.data() + gathered_ * y_.cols());
  const double weight = block.weight == nullptr ? 1 : block.weight[row];
  weight_ += weight;
  roots_[gathered_] = std::sqrt(weight);
  if (++gathered_ == most_gathered) multiply();
}

void OwnMoments::multiply() {
  if (rows_ == 0) {  // Not before: memory that is zeroed when asked for comes at its first use, while other ranks wait.
    xx_.setZero();
    xy_.setZero();
  }
  if (gathered_ == 0) return;
  if (rows_ == 0 && bias_) {
    guess_x_ = guess_of_means(x_.topRows(gathered_));
    guess_y_ = guess_of_means(y_.topRows(gathered_));
  }
  for (Index row = 0; row < gathered_; ++row) {
    x_.row(row) = roots_[row] * (x_.row(row) - guess_x_);
    y_.row(row) = roots_[row] * (y_.row(row) - guess_y_);
    yy_ += y_.row(row).cwiseAbs2();
    if (!bias_) continue;
    sum_x_ += roots_[row] * x_.row(row);
    sum_y_ += roots_[row] * y_.row(row);
  }
  gemm::add_gram(x_.cols(), gathered_, x_.data(), xx_.data());  // of columns, the upper triangle
  gemm::product_tn(x_.cols(), y_.cols(), gathered_, x_.data(), y_.data(), 1, xy_.data());
  rows_ += gathered_;
  gathered_ = 0;
}

Moments OwnMoments::of_all_ranks(const World& world) {
  Moments all;
  all.rows = rows_;
  all_reduce_sum(world, std::span(&all.rows, 1));
  const Index in = x_.cols(), out = y_.cols();
  // Deviations of this rank's means from its guess, then from all ranks' means.
  RowMajorMatrix apart_x = RowMajorMatrix::Zero(2, in), apart_y = RowMajorMatrix::Zero(2, out);
  if (bias_ && weight_ > 0) {
    apart_x.row(0) = sum_x_ / weight_;
    apart_y.row(0) = sum_y_ / weight_;
  }
  const RowVectorXd own_x = guess_x_ + apart_x.row(0), own_y = guess_y_ + apart_y.row(0);
  VectorXd sums(1 + in + out);
  sums << weight_, weight_ * own_x.transpose(), weight_ * own_y.transpose();
  sum_over_ranks(world, sums);
  all.weight = sums[0];
  const double divisor = all.weight > 0 ? all.weight : 1;
  all.mean_x = sums.segment(1, in) / divisor;
  all.mean_y = sums.tail(out) / divisor;
  all.xx = std::move(xx_);
  all.yy = yy_;
  if (bias_ && weight_ > 0) {
    apart_x.row(1) = own_x - all.mean_x.transpose();
    apart_y.row(1) = own_y - all.mean_y.transpose();
    const Eigen::Vector2d weights(-weight_, weight_);
    const RowMajorMatrix weighted = weights.asDiagonal() * apart_x;
    gemm::product_tn(in, in, 2, apart_x.data(), weighted.data(), 1, all.xx.data());
    gemm::product_tn(in, out, 2, weighted.data(), apart_y.data(), 1, xy_.data());
    all.yy += apart_y.cwiseAbs2().transpose() * weights;
  }
  sum_over_ranks(world, all.xx);
  sum_over_ranks(world, xy_);
  sum_over_ranks(world, all.yy);
  all.xy = xy_;
  all.xx.triangularView<Eigen::StrictlyLower>() = all.xx.transpose();
  return all;
}

Moments moments_of(const World& world, const LeastSquaresRows& rows, bool bias) {
  OwnMoments own = agree(world, [&] {
    OwnMoments sums(rows.in, rows.out, bias);
    rows.each_block([&](const LeastSquaresRows::Block& block) {
      for (std::int64_t row = 0; row < block.rows; ++row) sums.add(block, row);
    });
    sums.multiply();
    return sums;
  });
  Moments all = own.of_all_ranks(world);
  expect_finite(all);
  if (bias) clear_constants(all);
  return all;
}

void expect_finite(const Moments& moments) {
  if (moments.xx.allFinite() && moments.xy.allFinite()) return;
  for (Index column = 0; column < moments.xx.rows(); ++column) {
    if (moments.xx.col(column).allFinite() && moments.xy.row(column).allFinite()) continue;
    throw AgreedError(Status::wrong_use,
                      fmt::format("feature {} (from 0), or a target, has values so large that their squares overflow; "
                                  "rescale it",
                                  column));
  }
}

void clear_constants(Moments& moments) {
  for (Index column = 0; column < moments.xx.rows(); ++column) {
    const double noise = 8 * epsilon * moments.mean_x[column];
    if (moments.xx(column, column) > noise * noise * moments.weight) continue;
    moments.xx.row(column).setZero();
    moments.xx.col(column).setZero();
    moments.xy.row(column).setZero();
  }
}

}  // namespace ddp
