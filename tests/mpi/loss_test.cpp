// Every loss with its gradients on every device, against the formulas of PyTorch's documentation in float64 by Eigen.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/backends.hpp"
#include "support/eigen.hpp"

namespace ddp::test {
namespace {

class Losses : public DeviceSuite {};
DDP_INSTANTIATE_FOR_BACKENDS(Losses);

struct Case {
  LossKind kind;
  std::int64_t rows, in, out;
  bool row_weights = false, class_weights = false;
  double label_smoothing = 0;
  float spread = 1;  ///< of the weights, and so of the outputs

  [[nodiscard]] std::string name() const {
    return "kind " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(rows) + " rows, " +
           std::to_string(in) + " to " + std::to_string(out) + (row_weights ? ", row weights" : "") +
           (class_weights ? ", class weights" : "") + ", smoothing " + std::to_string(label_smoothing) + ", spread " +
           std::to_string(spread);
  }
};

/// One loss of one output and its derivative, or of one row.
double element(LossKind kind, double y, double t, double& dy) {
  if (kind == LossKind::mse) {
    dy = 2 * (y - t);
    return (y - t) * (y - t);
  }
  if (kind == LossKind::huber) {
    const double r = y - t;
    dy = std::abs(r) < 1 ? r : r < 0 ? -1 : 1;
    return std::abs(r) < 1 ? r * r / 2 : std::abs(r) - 0.5;
  }
  const double p = 1 / (1 + std::exp(-y));
  dy = p - t;
  return (y > 0 ? y : 0) - y * t + std::log1p(std::exp(-std::abs(y)));
}

double cross_entropy_row(const Case& c, const Eigen::RowVectorXd& z, Eigen::Index own, const Floats& w,
                         Eigen::RowVectorXd& dz) {
  const double largest = z.maxCoeff(), sum = (z.array() - largest).exp().sum(), log_sum = largest + std::log(sum);
  double loss = 0;
  dz = Eigen::RowVectorXd::Zero(z.size());
  for (Eigen::Index k = 0; k < z.size(); ++k) {
    const double weight = c.class_weights ? static_cast<double>(w[static_cast<std::size_t>(k)]) : 1;
    const double factor =
        weight * ((k == own ? 1 - c.label_smoothing : 0) + c.label_smoothing / static_cast<double>(z.size()));
    loss += factor * (log_sum - z(k));
    dz += factor * ((z.array() - log_sum).exp()).matrix();
    dz(k) -= factor;
  }
  return loss;
}

struct Expected {
  double loss_sum = 0;
  Matrix dw, db;
};

/// Inputs of a case, and PyTorch's formulas for them.
struct Numbers {
  Case c;
  std::int64_t targets;
  Floats x, weight, bias, target, row_weight, class_weight;

  explicit Numbers(const Case& of, unsigned head = 0)
      : c(of),
        targets(losses_of_a_row(c.kind, c.out)),
        x(random_floats(c.rows * c.in, 1)),
        weight(random_floats(c.out * c.in, 2 + 10 * head)),
        bias(random_floats(c.out, 3 + 10 * head)),
        target(random_floats(c.rows * targets, 4)),
        row_weight(random_floats(c.rows, 5)),
        class_weight(random_floats(c.out, 6)) {
    for (float& value : weight) value *= c.spread;
    for (float& value : row_weight) value = value < -0.8F ? 0 : std::abs(value);
    for (float& value : class_weight) value = std::abs(value);
    for (float& value : target) {
      if (c.kind == LossKind::bce_with_logits) value = value < 0 ? 0 : value < 0.5F ? 1 : value;  // probabilities too
      if (c.kind == LossKind::cross_entropy) {
        value = std::min(std::floor((value + 1) / 2 * static_cast<float>(c.out)), static_cast<float>(c.out - 1));
      }
    }
  }

  [[nodiscard]] Expected expected(double scale) const {
    Expected result;
    const Matrix X = matrix(x, c.rows, c.in), W = matrix(weight, c.out, c.in);
    const Matrix Y = (X * W.transpose()).rowwise() + matrix(bias, 1, c.out).row(0);
    Matrix dy(c.rows, c.out);
    for (Eigen::Index row = 0; row < c.rows; ++row) {
      const double w = c.row_weights ? static_cast<double>(row_weight[static_cast<std::size_t>(row)]) : 1;
      const auto t = [&](Eigen::Index k) {
        return static_cast<double>(target[static_cast<std::size_t>(row * targets + k)]);
      };
      if (c.kind == LossKind::cross_entropy) {
        Eigen::RowVectorXd dz;
        result.loss_sum += w * cross_entropy_row(c, Y.row(row), static_cast<Eigen::Index>(t(0)), class_weight, dz);
        dy.row(row) = scale * w * dz;
        continue;
      }
      for (Eigen::Index k = 0; k < c.out; ++k) {
        double d = 0;
        result.loss_sum += w * element(c.kind, Y(row, k), t(k), d);
        dy(row, k) = scale * w * d;
      }
    }
    result.dw = dy.transpose() * X;
    result.db = dy.colwise().sum();
    return result;
  }
};

constexpr LossKind kinds[] = {LossKind::mse, LossKind::huber, LossKind::bce_with_logits, LossKind::cross_entropy};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const LossKind kind : kinds) {
    for (const auto& [rows, in, out] :
         {std::array<std::int64_t, 3>{20, 10, 10}, {7, 3, 1}, {33, 5, 3}, {100, 9, 70}, {300, 4, 33}, {500, 20, 5}}) {
      for (const bool row_weights : {false, true}) {
        // The cross entropy of one class is 0, and relative to 0 all rounding is large.
        Case one{kind, rows, in, kind == LossKind::cross_entropy ? std::max<std::int64_t>(out, 2) : out, row_weights};
        all.push_back(one);
        one.spread = 30;
        all.push_back(one);
        if (kind != LossKind::cross_entropy) continue;
        one.spread = 1;
        one.class_weights = true;
        all.push_back(one);
        one.label_smoothing = 0.1;
        all.push_back(one);
        one.class_weights = false;
        all.push_back(one);
      }
    }
  }
  // Few outputs of many inputs, whose products are others.
  for (const auto& [rows, in, out] : {std::array<std::int64_t, 3>{5000, 300, 1},
                                      {130, 150, 2},
                                      {90, 70, 3},
                                      {90, 64, 4},
                                      {90, 33, 6},
                                      {90, 33, 7},
                                      {200, 47, 8}}) {
    all.push_back({LossKind::mse, rows, in, out});
  }
  return all;
}

/// The largest deviation, relative to the largest value. Float32 sums of some thousand addends, and exponentials of
/// outputs that are themselves rounded: those of magnitude 100 to 1e-5, which then is the exponentials' relative error.
double deviation(const Floats& values, const Matrix& expected) {
  return (matrix(values, expected.rows(), expected.cols()) - expected).cwiseAbs().maxCoeff() /
         (1e-30 + expected.cwiseAbs().maxCoeff());
}

Floats part(const Floats& values, std::int64_t numel, unsigned head) {
  return {values.begin() + numel * head, values.begin() + numel * (head + 1)};
}

/// Each head has parameters of its own.
void expect_formulas(Device& device, const Case& c, unsigned heads) {
  const double scale = 0.25, tolerance = c.spread > 1 ? 5e-5 : 4e-6;
  std::vector<Numbers> each;
  Floats weights, biases;
  for (unsigned head = 0; head < heads; ++head) {
    const Numbers& numbers = each.emplace_back(c, head);
    weights.insert(weights.end(), numbers.weight.begin(), numbers.weight.end());
    biases.insert(biases.end(), numbers.bias.begin(), numbers.bias.end());
  }
  OnDevice x(device, each[0].x), weight(device, weights), bias(device, biases), target(device, each[0].target),
      row_weight(device, each[0].row_weight), class_weight(device, each[0].class_weight);
  // What is there before is overwritten, or, the second time, added to.
  OnDevice dw(device, Floats(weights.size(), NAN)), db(device, Floats(biases.size(), NAN)),
      loss(device, Floats(heads, NAN));
  Buffer<double> loss_sum(device, heads);
  LinearLoss op{.rows = c.rows, .in = c.in, .out = c.out, .heads = heads};
  op.x = x.data();
  op.weight = weight.data();
  op.bias = bias.data();
  op.target = target.data();
  op.row_weight = c.row_weights ? row_weight.data() : nullptr;
  op.kind = c.kind;
  op.label_smoothing = static_cast<float>(c.label_smoothing);
  op.class_weight = c.class_weights ? class_weight.data() : nullptr;
  op.loss_scale = static_cast<float>(scale);
  op.loss = loss.data();
  op.loss_sum = loss_sum.data();
  op.weight_gradient = dw.data();
  op.bias_gradient = db.data();
  for (int times = 1; times <= 2; ++times) {
    op.add = times == 2;
    device.linear_loss(op);
    std::vector<double> sums(heads);
    loss_sum.download(sums);
    for (unsigned head = 0; head < heads; ++head) {
      SCOPED_TRACE(c.name() + ", head " + std::to_string(head) + ", times " + std::to_string(times));
      const Expected expected = each[head].expected(scale);
      EXPECT_NEAR(sums[head] / (times * expected.loss_sum), 1, tolerance);
      EXPECT_NEAR(static_cast<double>(loss.values()[head]) / (times * scale * expected.loss_sum), 1, tolerance);
      EXPECT_LE(deviation(part(dw.values(), c.out * c.in, head), times * expected.dw), tolerance);
      EXPECT_LE(deviation(part(db.values(), c.out, head), times * expected.db), tolerance);
    }
  }
  op.rows = 0;
  const Floats before = dw.values();
  device.linear_loss(op);
  EXPECT_EQ(dw.values(), before) << "no rows add nothing, " << c.name();
}

TEST_P(Losses, ValuesAndGradients) {
  for (const Case& c : cases()) expect_formulas(device(), c, 1);
}

TEST_P(Losses, HeadsAreLayersSideBySide) {
  for (const Case& c : cases()) {
    if (c.rows <= 100 && c.spread == 1) expect_formulas(device(), c, 3);
  }
}

/// One row whose outputs are the bias alone.
double loss_of(Device& device, LossKind kind, const Floats& outputs, float target, Floats& bias_gradient) {
  OnDevice x(device, {0}), weight(device, Floats(outputs.size(), 0)), bias(device, outputs), t(device, {target}),
      dw(device, weight.values()), db(device, outputs);
  Buffer<double> sum(device, 1);
  LinearLoss op{.rows = 1, .in = 1, .out = std::ssize(outputs)};
  op.x = x.data();
  op.weight = weight.data();
  op.bias = bias.data();
  op.target = t.data();
  op.kind = kind;
  op.loss_sum = sum.data();
  op.weight_gradient = dw.data();
  op.bias_gradient = db.data();
  device.linear_loss(op);
  double value = 0;
  sum.download({&value, 1});
  bias_gradient = db.values();
  return value;
}

TEST_P(Losses, LogitsOfAnySizeGiveFiniteLosses) {
  Floats gradient;
  for (const float size : {100.0F, 1e4F, 1e30F}) {
    const auto z = static_cast<double>(size);
    EXPECT_EQ(loss_of(device(), LossKind::bce_with_logits, {size}, 0, gradient), z);
    EXPECT_EQ(gradient, Floats{1});
    EXPECT_NEAR(loss_of(device(), LossKind::bce_with_logits, {size}, 1, gradient), 0, 1e-37);
    EXPECT_EQ(loss_of(device(), LossKind::bce_with_logits, {-size}, 1, gradient), z);
    EXPECT_EQ(gradient, Floats{-1});
    EXPECT_EQ(loss_of(device(), LossKind::cross_entropy, {size, 0, -size}, 1, gradient), z);
    EXPECT_EQ(gradient[0], 1.0F);
    EXPECT_EQ(gradient[1], -1.0F);
    EXPECT_EQ(loss_of(device(), LossKind::cross_entropy, {size, 0, -size}, 2, gradient), 2 * z);
  }
}

TEST_P(Losses, WhatIsNoNumberOrNoClassIsSeen) {
  Floats gradient;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const LossKind kind : kinds) {
    EXPECT_FALSE(std::isfinite(loss_of(device(), kind, {nan}, 0, gradient))) << static_cast<int>(kind);
  }
  for (const Floats& outputs : {Floats{1, nan, 2}, Floats{1, infinity, 2}, Floats{nan, 1, 2}}) {
    EXPECT_FALSE(std::isfinite(loss_of(device(), LossKind::cross_entropy, outputs, 0, gradient)));
  }
  for (const float target : {-1.0F, 3.0F, nan, 1e30F}) {
    EXPECT_TRUE(std::isnan(loss_of(device(), LossKind::cross_entropy, {1, 2, 3}, target, gradient))) << target;
  }
}

}  // namespace
}  // namespace ddp::test
