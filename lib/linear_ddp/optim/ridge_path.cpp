#include <linear_ddp/optim/ridge_path.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/optim/held_out_errors.hpp>
#include <linear_ddp/optim/moments.hpp>

namespace ddp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Collective, one pass.
std::vector<Moments> moments_of_parts(const World& world, const LeastSquaresRows& rows, std::span<const int> part,
                                      int parts) {
  auto own = agree(world, [&] {
    std::vector<OwnMoments> sums;
    for (int i = 0; i < parts; ++i) sums.emplace_back(rows.in, rows.out, true);
    auto next = part.begin();
    rows.each_block([&](const LeastSquaresRows::Block& block) {
      for (std::int64_t row = 0; row < block.rows; ++row) sums.at(static_cast<std::size_t>(*next++)).add(block, row);
    });
    for (OwnMoments& sum : sums) sum.multiply();
    return sums;
  });
  std::vector<Moments> all;
  for (OwnMoments& sums : own) {
    all.push_back(sums.of_all_ranks(world));
    sums = OwnMoments(0, 0, true);  // its memory is given back
    expect_finite(all.back());
    if (!all.back().yy.allFinite()) {
      throw AgreedError(Status::wrong_use, "a target has values so large that their squares overflow; rescale it");
    }
  }
  return all;
}

void expect_rows(const std::vector<Moments>& parts, std::span<const int> held_out) {
  const auto sum = [](double weight, const Moments& part) { return weight + part.weight; };
  for (const int held : held_out) {
    const auto part = parts.begin() + held;
    if (part->weight == 0) {
      throw AgreedError(Status::wrong_use,
                        fmt::format("part {} (from 0) of the rows is to be held out, but has no row with a weight; "
                                    "use fewer parts",
                                    held));
    }
    if (std::accumulate(parts.begin(), part, 0.0, sum) + std::accumulate(part + 1, parts.end(), 0.0, sum) == 0) {
      throw AgreedError(Status::wrong_use,
                        fmt::format("part {} (from 0) of the rows has all the weight, and nothing is left to fit when "
                                    "it is held out; use more parts",
                                    held));
    }
  }
}

struct Means {
  const VectorXd &x, &y;
};
/// Of targets.
struct Range {
  Index first, count;
};
/// Of some targets of the rows of several parts, with deviations from the given means, else from their own.
Moments joined(const std::vector<const Moments*>& parts, Range targets, const std::optional<Means>& given) {
  const auto own = [targets](const VectorXd& of_targets) { return of_targets.segment(targets.first, targets.count); };
  Moments all;
  VectorXd sum_x = VectorXd::Zero(parts.front()->mean_x.size()), sum_y = VectorXd::Zero(targets.count);
  for (const Moments* part : parts) {
    if (part->weight == 0) continue;  // it has no means
    all.weight += part->weight;
    all.rows += part->rows;
    sum_x += part->weight * part->mean_x;
    sum_y += part->weight * own(part->mean_y);
  }
  all.mean_x = given ? given->x : VectorXd(sum_x / all.weight);
  all.mean_y = given ? given->y : VectorXd(sum_y / all.weight);
  const Index in = all.mean_x.size(), out = targets.count;
  all.xx = MatrixXd::Zero(in, in);
  all.xy = MatrixXd::Zero(in, out);
  all.yy = VectorXd::Zero(out);
  MatrixXd apart_x(in, std::ssize(parts)), apart_y(out, std::ssize(parts));
  Index count = 0;
  for (const Moments* part : parts) {
    if (part->weight == 0) continue;
    all.xx += part->xx;
    all.xy += part->xy.middleCols(targets.first, out);
    all.yy += own(part->yy);
    apart_x.col(count) = std::sqrt(part->weight) * (part->mean_x - all.mean_x);
    apart_y.col(count++) = std::sqrt(part->weight) * (own(part->mean_y) - all.mean_y);
  }
  // Not by the BLAS, whose sums may differ from CPU to CPU: the ranks must have the same.
  all.xx.noalias() += apart_x.leftCols(count) * apart_x.leftCols(count).transpose();
  all.xy.noalias() += apart_x.leftCols(count) * apart_y.leftCols(count).transpose();
  all.yy += apart_y.leftCols(count).cwiseAbs2().rowwise().sum();
  return all;
}

/// As a fit of these rows needs them.
Moments fitted(const std::vector<const Moments*>& parts, Range targets, bool bias) {
  const VectorXd zero_x = VectorXd::Zero(parts.front()->mean_x.size()), zero_y = VectorXd::Zero(targets.count);
  if (!bias) return joined(parts, targets, Means{zero_x, zero_y});
  Moments moments = joined(parts, targets, std::nullopt);
  clear_constants(moments);
  return moments;
}

/// The targets that a rank scores for one of several folds. A fold is one rank's work; those left over, fewer than the
/// ranks, are shared out by targets to some ranks each.
Range targets_of(const World& world, Index fold, Index folds, Index targets) {
  const Index ranks = world.size(), rank = world.rank(), left_over = folds % ranks, first_shared = folds - left_over;
  if (fold < first_shared) return {0, fold % ranks == rank ? targets : 0};
  const Index first_rank = fold - first_shared;
  if (rank % left_over != first_rank) return {0, 0};
  const Index sharers = (ranks - first_rank - 1) / left_over + 1, place = rank / left_over;
  const Index first = targets * place / sharers;
  return {first, targets * (place + 1) / sharers - first};
}

/// What some targets add to the scores.
std::vector<RidgeScore> scores_of(const std::vector<Moments>& parts, std::size_t held_out, Range targets,
                                  std::span<const double> l2, bool bias) {
  const Moments& part = parts[held_out];
  std::vector<const Moments*> others;
  for (const Moments& other : parts) {
    if (&other != &part) others.push_back(&other);
  }
  const Moments fit = fitted(others, targets, bias);
  const auto of_outputs = static_cast<double>(part.yy.size());
  const VectorXd lambdas = Eigen::Map<const VectorXd>(l2.data(), std::ssize(l2)) * (fit.weight * of_outputs / 2);
  const HeldOutErrors held(fit, joined({&part}, targets, Means{fit.mean_x, fit.mean_y}), lambdas);

  const VectorXd yy = part.yy.segment(targets.first, targets.count);
  const VectorXd noise = (16 * epsilon * part.mean_y.segment(targets.first, targets.count)).cwiseAbs2() * part.weight;
  const VectorXd mse = held.of(VectorXd::Ones(targets.count)) / (part.weight * of_outputs);
  VectorXd r2 = -held.of((yy.array() > noise.array()).select(yy.cwiseInverse(), 0));
  for (Index target = 0; target < targets.count; ++target) {
    if (yy[target] > noise[target]) {
      r2.array() += 1;
    } else {
      r2.array() += (held.of(VectorXd::Unit(targets.count, target)).array() <= noise[target]).cast<double>();
    }
  }
  std::vector<RidgeScore> scores;
  for (Index penalty = 0; penalty < lambdas.size(); ++penalty) {
    scores.push_back(
        {mse[penalty], part.rows < 2 ? std::numeric_limits<double>::quiet_NaN() : r2[penalty] / of_outputs});
  }
  return scores;
}

}  // namespace

RidgePath::RidgePath(const World& world, const LeastSquaresRows& rows, std::span<const int> part, int parts)
    : world_(world), parts_(moments_of_parts(world, rows, part, parts)) {}

RidgePath::~RidgePath() = default;

std::vector<std::vector<RidgeScore>> RidgePath::scores(std::span<const int> held_out, std::span<const double> l2,
                                                       bool bias) const {
  expect_rows(parts_, held_out);
  std::vector<double> values(2 * held_out.size() * l2.size(), 0);
  agree(world_, [&] {
    for (std::size_t fold = 0; fold < held_out.size(); ++fold) {
      const Range targets = targets_of(world_, static_cast<Index>(fold), std::ssize(held_out), parts_[0].yy.size());
      if (targets.count == 0) continue;
      auto value = values.begin() + static_cast<std::ptrdiff_t>(2 * fold * l2.size());
      for (const RidgeScore& score : scores_of(parts_, static_cast<std::size_t>(held_out[fold]), targets, l2, bias)) {
        *value++ = score.mse;
        *value++ = score.r2;
      }
    }
  });
  sum_over_ranks(world_, values);
  std::vector<std::vector<RidgeScore>> scores(held_out.size());
  auto value = values.begin();
  for (auto& of_part : scores) {
    for (std::size_t penalty = 0; penalty < l2.size(); ++penalty, value += 2) of_part.push_back({value[0], value[1]});
  }
  return scores;
}

std::shared_ptr<const Moments> RidgePath::moments(std::span<const int> parts, bool bias) const {
  std::vector<const Moments*> chosen;
  for (const int part : parts) chosen.push_back(&parts_.at(static_cast<std::size_t>(part)));
  return std::make_shared<Moments>(fitted(chosen, {0, parts_[0].yy.size()}, bias));
}

}  // namespace ddp
