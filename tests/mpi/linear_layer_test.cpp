// The products, the loss and the gradients of a linear layer on every device, against float64 by Eigen.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/backends.hpp"
#include "support/eigen.hpp"

namespace ddp::test {
namespace {

class LinearLayers : public DeviceSuite {};
DDP_INSTANTIATE_FOR_BACKENDS(LinearLayers);

/// How far a float32 sum of k products may be from the exact one, as a multiple of the sum of their magnitudes:
/// roundings add up like a random walk, so √k of them count, and a factor of 6 makes an exception all but impossible
/// (N. Higham and T. Mary, A new approach to probabilistic rounding error analysis, 2019: 2 exp(-6²/2) = 3e-8).
double rounding(std::int64_t k) {
  return 6 * std::sqrt(static_cast<double>(k) + 2) * std::numeric_limits<float>::epsilon() / 2;
}

void expect_within(const Floats& values, const Matrix& expected, const Matrix& bound, const std::string& what) {
  const Matrix difference = (matrix(values, expected.rows(), expected.cols()) - expected).cwiseAbs();
  Eigen::Index row = 0, column = 0;
  if (expected.size() == 0) return;
  const double worst = (difference - bound).maxCoeff(&row, &column);
  EXPECT_TRUE(worst <= 0) << what << " at " << row << ", " << column << ": off by " << difference(row, column)
                          << ", the bound is " << bound(row, column);
}

/// A layer's numbers, what comes out of them, and how far float32 arithmetic may be from it.
struct Layer {
  std::int64_t rows, in, out;
  bool with_bias;
  float scale = 0.25F;
  Floats x = random_floats(rows * in, 1), weight = random_floats(out * in, 2), bias = random_floats(out, 3),
         target = random_floats(rows * out, 4);

  Matrix y, y_bound, dy, dy_bound, dw, dw_bound, db, db_bound;
  double loss_sum = 0, loss_sum_bound = 0;

  Layer(std::int64_t rows_, std::int64_t in_, std::int64_t out_, bool with_bias_)
      : rows(rows_), in(in_), out(out_), with_bias(with_bias_) {
    const Matrix X = matrix(x, rows, in), W = matrix(weight, out, in), T = matrix(target, rows, out);
    const Matrix B = with_bias ? matrix(bias, 1, out) : Matrix::Zero(1, out);
    y = (X * W.transpose()).rowwise() + B.row(0);
    y_bound = rounding(in) * ((X.cwiseAbs() * W.cwiseAbs().transpose()).rowwise() + B.row(0).cwiseAbs());

    const Matrix residual = y - T;
    const double s = static_cast<double>(scale), few = 4 * std::numeric_limits<float>::epsilon();
    loss_sum = residual.squaredNorm();
    loss_sum_bound = (2 * residual.cwiseAbs().cwiseProduct(y_bound) + y_bound.cwiseAbs2()).sum() + few * loss_sum;
    dy = 2 * s * residual;
    dy_bound = 2 * s * y_bound + few * dy.cwiseAbs();
    dw = dy.transpose() * X;
    dw_bound = dy_bound.transpose() * X.cwiseAbs() + rounding(rows) * (dy.cwiseAbs().transpose() * X.cwiseAbs());
    db = dy.colwise().sum();
    db_bound = dy_bound.colwise().sum() + rounding(rows) * dy.cwiseAbs().colwise().sum();
  }

  std::string name() const {
    return std::to_string(rows) + " rows, " + std::to_string(in) + " to " + std::to_string(out) +
           (with_bias ? "" : ", no bias");
  }
};

/// A layer's numbers on the device, and the operation on them that an evaluation asks for.
struct PlacedLayer {
  OnDevice x, weight, bias, target;
  LinearLoss operation;

  PlacedLayer(Device& device, const Layer& layer, std::int64_t offset = 0)
      : x(device, layer.x, offset),
        weight(device, layer.weight, offset),
        bias(device, layer.bias, offset),
        target(device, layer.target, offset) {
    operation = {.rows = layer.rows,
                 .in = layer.in,
                 .out = layer.out,
                 .x = x.data(),
                 .weight = weight.data(),
                 .bias = layer.with_bias ? bias.data() : nullptr,
                 .target = target.data(),
                 .loss_scale = layer.scale};
  }
};

struct Shape {
  std::int64_t rows, in, out;
};
constexpr Shape shapes[] = {{20, 10, 10}, {1, 1, 1},   {3, 1, 5},      {33, 7, 1},     {64, 256, 256}, {5, 3, 17},
                            {100, 31, 2}, {17, 5, 64}, {1000, 129, 3}, {20011, 16, 1}, {3000, 4, 70},  {140'001, 3, 2}};

TEST_P(LinearLayers, LinearForward) {
  for (const auto& [rows, in, out] : shapes) {
    for (const bool with_bias : {true, false}) {
      const Layer layer(rows, in, out, with_bias);
      OnDevice x(device(), layer.x), weight(device(), layer.weight), bias(device(), layer.bias);
      OnDevice y(device(), Floats(layer.target.size(), NAN));
      device().linear_forward({rows, in, out, x.data(), weight.data(), with_bias ? bias.data() : nullptr, y.data()});
      expect_within(y.values(), layer.y, layer.y_bound, layer.name());
    }
  }
}

TEST_P(LinearLayers, LinearLossAndItsGradients) {
  for (const auto& [rows, in, out] : shapes) {
    for (const bool with_bias : {true, false}) {
      // Batches are parts of larger arrays, and begin anywhere in them.
      for (const std::int64_t offset : {0, 1, 2}) {
        const Layer layer(rows, in, out, with_bias);
        PlacedLayer placed(device(), layer, offset);
        OnDevice dw(device(), Floats(layer.weight.size(), NAN), offset),
            db(device(), Floats(layer.bias.size(), NAN), offset);
        OnDevice loss(device(), {NAN}, offset);
        Buffer<double> loss_sum(device(), 1);
        placed.operation.loss = loss.data();
        placed.operation.loss_sum = loss_sum.data();
        placed.operation.weight_gradient = dw.data();
        placed.operation.bias_gradient = with_bias ? db.data() : nullptr;
        device().linear_loss(placed.operation);
        const std::string name = layer.name() + ", offset " + std::to_string(offset);
        std::vector<double> sum(1);
        loss_sum.download(sum);
        const double s = static_cast<double>(layer.scale);
        EXPECT_NEAR(sum[0], layer.loss_sum, layer.loss_sum_bound) << name;
        EXPECT_NEAR(static_cast<double>(loss.values()[0]), s * layer.loss_sum,
                    s * (layer.loss_sum_bound + 1e-7 * layer.loss_sum))  // the result is rounded to float32
            << name;
        expect_within(dw.values(), layer.dw, layer.dw_bound, "weight gradient, " + name);
        if (with_bias) expect_within(db.values(), layer.db, layer.db_bound, "bias gradient, " + name);
        EXPECT_EQ(placed.x.values(), layer.x);
        EXPECT_EQ(placed.weight.values(), layer.weight);
        EXPECT_EQ(placed.target.values(), layer.target);
      }
    }
  }
}

TEST_P(LinearLayers, BatchesOfAnySizeFollowEachOther) {
  for (const std::int64_t rows : {100, 3000, 100, 0, 70, 3000}) {
    for (const std::int64_t out : {70, 3}) {
      const Layer layer(rows, 20, out, true);
      PlacedLayer placed(device(), layer);
      OnDevice dw(device(), layer.weight), db(device(), layer.bias);
      placed.operation.weight_gradient = dw.data();
      placed.operation.bias_gradient = db.data();
      device().linear_loss(placed.operation);
      expect_within(dw.values(), layer.dw, layer.dw_bound, "weight gradient, " + layer.name());
      expect_within(db.values(), layer.db, layer.db_bound, "bias gradient, " + layer.name());
    }
  }
}

TEST_P(LinearLayers, GradientsAreAddedToThoseThatAreThere) {
  for (const std::int64_t rows : {100, 140'001}) {
    const Layer layer(rows, 3, 2, true);
    PlacedLayer placed(device(), layer);
    OnDevice dw(device(), Floats(6, 0)), db(device(), Floats(2, 0));
    placed.operation.weight_gradient = dw.data();
    placed.operation.bias_gradient = db.data();
    placed.operation.add = true;
    device().linear_loss(placed.operation);
    device().linear_loss(placed.operation);
    expect_within(dw.values(), 2 * layer.dw, 2 * layer.dw_bound, "weight gradient, " + layer.name());
    expect_within(db.values(), 2 * layer.db, 2 * layer.db_bound, "bias gradient, " + layer.name());
  }
}

TEST_P(LinearLayers, LinearLossOfAnEvaluationLeavesNoGradients) {
  const Layer layer(33, 7, 3, true);
  PlacedLayer placed(device(), layer);
  Buffer<double> loss_sum(device(), 1);
  placed.operation.loss_sum = loss_sum.data();
  for (int repetition = 0; repetition < 2; ++repetition) {  // overwritten, not added to
    device().linear_loss(placed.operation);
    std::vector<double> sum(1);
    loss_sum.download(sum);
    EXPECT_NEAR(sum[0], layer.loss_sum, layer.loss_sum_bound);
  }
}

TEST_P(LinearLayers, LinearLossOfNoRowsIsZeroWithItsGradients) {
  for (const std::int64_t out : {1, 4}) {
    OnDevice weight(device(), Floats(static_cast<std::size_t>(3 * out), 1)),
        bias(device(), Floats(static_cast<std::size_t>(out), 1));
    OnDevice dw(device(), Floats(static_cast<std::size_t>(3 * out), NAN)),
        db(device(), Floats(static_cast<std::size_t>(out), NAN));
    OnDevice loss(device(), {NAN});
    Buffer<double> loss_sum(device(), 1);
    loss_sum.upload(std::vector<double>{NAN});
    device().linear_loss({.rows = 0,
                          .in = 3,
                          .out = out,
                          .weight = weight.data(),
                          .bias = bias.data(),
                          .loss = loss.data(),
                          .loss_sum = loss_sum.data(),
                          .weight_gradient = dw.data(),
                          .bias_gradient = db.data()});
    std::vector<double> sum{NAN};
    loss_sum.download(sum);
    EXPECT_EQ(sum[0], 0);
    EXPECT_EQ(loss.values(), Floats{0});
    EXPECT_EQ(dw.values(), Floats(static_cast<std::size_t>(3 * out), 0));
    EXPECT_EQ(db.values(), Floats(static_cast<std::size_t>(out), 0));
  }
  device().linear_forward({0, 3, 2, nullptr, nullptr, nullptr, nullptr});
}

/// Small whole numbers, so that every sum is exact in float.
TEST_P(LinearLayers, BareProductsAreThose) {
  constexpr std::int64_t rows = 37, in = 5, out = 3;
  const auto whole = [](std::int64_t numel, unsigned seed) {
    Floats values = random_floats(numel, seed);
    for (float& value : values) value = std::round(3 * value);
    return values;
  };
  const Floats x = whole(rows * in, 1), w = whole(out * in, 2);
  OnDevice on_x(device(), x), on_w(device(), w), y(device(), Floats(rows * out)), dw(device(), Floats(out * in, 9)),
      dx(device(), Floats(rows * in, 9));
  for (const bool wants_dx : {false, true}) {
    device().linear_products(
        {rows, in, out, on_x.data(), on_w.data(), y.data(), dw.data(), wants_dx ? dx.data() : nullptr});
    const auto matrix = [](const Floats& values, std::int64_t height, std::int64_t width) {
      return Eigen::Map<const Eigen::Matrix<float, -1, -1, Eigen::RowMajor>>(values.data(), height, width)
          .cast<double>()
          .eval();
    };
    const Matrix mx = matrix(x, rows, in), mw = matrix(w, out, in), my = mx * mw.transpose();
    EXPECT_EQ(matrix(y.values(), rows, out), my);
    EXPECT_EQ(matrix(dw.values(), out, in), my.transpose() * mx);
    EXPECT_EQ(matrix(dx.values(), rows, in), wants_dx ? Matrix(my * mw) : Matrix(Matrix::Constant(rows, in, 9)));
  }
}

TEST_P(LinearLayers, ALossThatIsNotFiniteIsSeen) {
  Layer layer(3000, 4, 2, true);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::size_t place : {std::size_t{0}, std::size_t{2741}, layer.target.size() - 1}) {
      const float good = std::exchange(layer.target[place], bad);
      PlacedLayer placed(device(), layer);
      OnDevice loss(device(), {0});
      placed.operation.loss = loss.data();
      device().linear_loss(placed.operation);
      EXPECT_FALSE(std::isfinite(loss.values()[0])) << bad << " at " << place;
      layer.target[place] = good;
    }
  }
}

}  // namespace
}  // namespace ddp::test
