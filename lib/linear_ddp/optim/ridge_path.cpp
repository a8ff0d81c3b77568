#include <linear_ddp/optim/ridge_path.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/optim/scaled_columns.hpp>
#include "linear_ddp/device/gemm.hpp"
#include "linear_ddp/optim/symmetric_eigen.hpp"

namespace ddp {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// aᵀ · b
RowMajorMatrix product_tn(const RowMajorMatrix& a, const RowMajorMatrix& b) {
  RowMajorMatrix c(a.cols(), b.cols());
  gemm::product_tn(a.cols(), b.cols(), a.rows(), a.data(), b.data(), 0, c.data());
  return c;
}

constexpr int nobody = -1;

/// The moments of several parts together (Chan, Golub, LeVeque, 1979): nothing is subtracted.
Moments together(const std::vector<Moments>& parts, int left_out) {
  Moments all;
  const Index in = parts[0].mean_x.size(), out = parts[0].mean_y.size();
  all.mean_x = VectorXd::Zero(in);
  all.mean_y = VectorXd::Zero(out);
  all.xx = Eigen::MatrixXd::Zero(in, in);
  all.xy = Eigen::MatrixXd::Zero(in, out);
  const auto each = [&](const auto& visit) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (std::cmp_not_equal(i, left_out) && parts[i].weight > 0) visit(parts[i]);
    }
  };
  each([&](const Moments& part) {
    all.weight += part.weight;
    all.rows += part.rows;
  });
  each([&](const Moments& part) {
    all.mean_x += part.weight / all.weight * part.mean_x;
    all.mean_y += part.weight / all.weight * part.mean_y;
  });
  each([&](const Moments& part) {
    const VectorXd apart_x = part.mean_x - all.mean_x, apart_y = part.mean_y - all.mean_y;
    all.xx += part.xx + part.weight * apart_x * apart_x.transpose();
    all.xy += part.xy + part.weight * apart_x * apart_y.transpose();
  });
  return all;
}

/// A fit in the basis of its own eigenvectors, where each penalty is a vector of factors.
class FoldScores {
 public:
  FoldScores(const Moments& fit, const Moments& held) : out_(held.mean_y.size()), weight_(held.weight) {
    const VectorXd apart_x = held.mean_x - fit.mean_x, apart_y = held.average_y - fit.mean_y;
    const RowMajorMatrix xx = held.xx + weight_ * apart_x * apart_x.transpose();
    const RowMajorMatrix xy = held.xy + weight_ * apart_x * (held.mean_y - fit.mean_y).transpose();
    const VectorXd yy = held.yy + weight_ * apart_y.cwiseAbs2();

    RowMajorMatrix q = fit.xx;
    values_ = symmetric_eigen(q);
    const RowMajorMatrix c = product_tn(q, fit.xy), b = product_tn(q, xy);
    const RowMajorMatrix g = product_tn(q, product_tn(xx, q));
    const auto noise = (8 * epsilon * held.average_y).cwiseAbs2() * weight_;
    const auto is_constant = [&](Index t) { return held.yy[t] <= noise[t]; };

    const auto outputs = static_cast<double>(out_);
    VectorXd relative(out_);
    for (Index t = 0; t < out_; ++t) {
      relative[t] = is_constant(t) ? 0 : 1 / (held.yy[t] * outputs);
      if (is_constant(t)) constants_.push_back(sums_of(c.col(t), b.col(t), g, yy[t], VectorXd::Ones(1), noise[t]));
    }
    squares_ = sums_of(c, b, g, VectorXd::Constant(out_, 1 / outputs).dot(yy), VectorXd::Constant(out_, 1 / outputs));
    relative_ = sums_of(c, b, g, relative.dot(yy), relative);
  }

  [[nodiscard]] RidgeScore of(double ridge) const {
    const double least = values_.size() == 0 ? 0 : static_cast<double>(values_.size()) * epsilon * values_.maxCoeff();
    const VectorXd factors = values_.unaryExpr([&](double value) {
      const double sum = std::max(value, 0.0) + ridge;
      return sum <= least ? 0.0 : 1 / sum;  // of all solutions the smallest
    });
    double r2 = 1 - static_cast<double>(constants_.size()) / static_cast<double>(out_) - relative_.of(factors);
    for (const Sums& constant : constants_) {
      r2 += (constant.of(factors) <= constant.noise ? 1.0 : 0.0) / static_cast<double>(out_);
    }
    return {squares_.of(factors) / weight_, r2};
  }

 private:
  /// Σ of the outputs' squares of errors, each times a factor of its own, as a function of the penalty's factors d:
  /// constant - 2 d · linear + dᵀ · quadratic · d.
  struct Sums {
    double constant = 0, noise = 0;
    VectorXd linear;
    RowMajorMatrix quadratic;  ///< twice its lower triangle, and its diagonal
    [[nodiscard]] double of(const VectorXd& d) const {
      return std::max(constant - 2 * d.dot(linear) + d.dot(VectorXd(quadratic.triangularView<Eigen::Lower>() * d)),
                      0.0);
    }
  };

  static Sums sums_of(const RowMajorMatrix& c, const RowMajorMatrix& b, const RowMajorMatrix& g, double constant,
                      const VectorXd& factor, double noise = 0) {
    Sums sums{constant, noise, c.cwiseProduct(b) * factor, RowMajorMatrix::Zero(c.rows(), c.rows())};
    const RowMajorMatrix scaled = (c * factor.cwiseSqrt().asDiagonal()).transpose();
    gemm::add_gram(c.rows(), scaled.rows(), scaled.data(), sums.quadratic.data());
    sums.quadratic = 2 * sums.quadratic.cwiseProduct(g);
    sums.quadratic.diagonal() /= 2;
    return sums;
  }

  Index out_;
  double weight_;
  VectorXd values_;
  Sums squares_, relative_;
  std::vector<Sums> constants_;
};

}  // namespace

RidgePath score_ridge_path(const World& world, const LeastSquaresRows& rows, const HeldOutParts& parts,
                           std::span<const double> l2, bool bias) {
  const std::vector<Moments> moments = moments_of_parts(world, rows, parts.part, parts.parts, bias);
  std::vector<double> scores(parts.held_out.size() * l2.size() * 2, 0.0);
  agree(world, [&] {
    for (std::size_t fold = 0; fold < parts.held_out.size(); ++fold) {
      if (std::cmp_not_equal(fold % static_cast<std::size_t>(world.size()), world.rank())) continue;
      const int part = parts.held_out[fold];
      const Moments& held = moments[static_cast<std::size_t>(part)];
      const Moments fit = together(moments, part);
      const FoldScores fold_scores(fit, held);
      for (std::size_t i = 0; i < l2.size(); ++i) {
        const RidgeScore score = fold_scores.of(l2[i] / 2 * fit.weight * static_cast<double>(rows.out));
        scores[2 * (fold * l2.size() + i)] = score.mse;
        scores[2 * (fold * l2.size() + i) + 1] = score.r2;
      }
    }
  });
  sum_over_ranks(world, scores);
  RidgePath path;
  path.scores.resize(parts.held_out.size());
  for (std::size_t i = 0; i < scores.size(); i += 2) {
    path.scores[i / 2 / l2.size()].push_back({scores[i], scores[i + 1]});
  }
  const bool each_in_turn = std::cmp_equal(parts.held_out.size(), parts.parts);
  path.moments = std::make_shared<const Moments>(together(moments, each_in_turn ? nobody : parts.held_out.front()));
  return path;
}

}  // namespace ddp
