// Stacks of layers on every device, against the chain rule in float64 by Eigen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <linear_ddp/nn/activation.hpp>
#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/optim/sgd.hpp>
#include "support/backends.hpp"
#include "support/eigen.hpp"
#include "support/message_of.hpp"

namespace ddp::test {
namespace {

class Stacks : public DeviceSuite {};
DDP_INSTANTIATE_FOR_BACKENDS(Stacks);

double value_of(Activation activation, double z) {
  std::vector<double> one{z};
  activate(activation, one);
  return one[0];
}

/// As a difference of fourth order, so that it is independent of the formulas; of ReLU, away from its kink, exact.
double derivative_of(Activation activation, double z) {
  if (activation == Activation::relu) return z > 0 ? 1 : 0;
  const double h = 1e-3;
  return (8 * (value_of(activation, z + h) - value_of(activation, z - h)) -
          (value_of(activation, z + 2 * h) - value_of(activation, z - 2 * h))) /
         (12 * h);
}

/// The model's parameters in float64, and Σ w (y - t)² with its gradients by the chain rule.
struct Reference {
  std::vector<Matrix> weight, bias, weight_gradient, bias_gradient;
  Matrix outputs;
  double loss = 0;
};

Reference reference_of(const Model& model, const Matrix& x, const Matrix& target, const Floats& row_weight) {
  Reference reference;
  std::vector<Matrix> z, y{x};
  std::size_t slot = 0;
  for (const LinearLayer& layer : model.layout().layers()) {
    reference.weight.push_back(matrix(model.download(slot++), layer.out, layer.in));
    reference.bias.push_back(layer.bias < 0 ? Matrix::Zero(1, layer.out)
                                            : matrix(model.download(slot++), 1, layer.out));
    z.push_back((y.back() * reference.weight.back().transpose()).rowwise() + reference.bias.back().row(0));
    y.push_back(z.back().unaryExpr([&](double value) { return value_of(model.shape().activation, value); }));
  }
  reference.outputs = z.back();
  Matrix d = z.back() - target;
  for (Eigen::Index row = 0; row < d.rows(); ++row) {
    const double w = row_weight.empty() ? 1 : static_cast<double>(row_weight[static_cast<std::size_t>(row)]);
    reference.loss += w * d.row(row).squaredNorm();
    d.row(row) *= 2 * w;
  }
  for (std::size_t layer = z.size(); layer-- > 0;) {
    reference.weight_gradient.insert(reference.weight_gradient.begin(), d.transpose() * y[layer]);
    reference.bias_gradient.insert(reference.bias_gradient.begin(), d.colwise().sum());
    if (layer == 0) break;
    const Matrix slope =
        z[layer - 1].unaryExpr([&](double value) { return derivative_of(model.shape().activation, value); });
    d = (d * reference.weight[layer]).cwiseProduct(slope);
  }
  return reference;
}

/// Relative to the largest value. Float32 sums of some hundred addends through four layers.
void expect_near(const Floats& values, const Matrix& expected) {
  const Matrix apart = matrix(values, expected.rows(), expected.cols()) - expected;
  EXPECT_LE(apart.cwiseAbs().maxCoeff(), 3e-6 * (1e-30 + expected.cwiseAbs().maxCoeff()));
}

Floats on_host(Device& device, std::span<const float> values) {
  Floats copy(values.size());
  device.download(copy.data(), values.data(), values.size_bytes());
  return copy;
}

void fill(Model& model) {
  for (std::size_t slot = 0; slot < model.layout().slots().size(); ++slot) {
    model.upload(slot, random_floats(model.layout().slots()[slot].numel, static_cast<unsigned>(slot) + 10));
  }
}

constexpr Activation activations[] = {Activation::relu, Activation::tanh, Activation::gelu, Activation::none};

TEST_P(Stacks, GradientsFollowTheChainRule) {
  for (const Activation activation : activations) {
    for (const auto& hidden : std::vector<std::vector<std::int64_t>>{{5}, {16, 3}, {70, 7, 33}}) {
      for (const auto& [rows, bias, weighted] :
           {std::tuple{std::int64_t{1}, true, false}, {37, false, true}, {3000, true, true}}) {
        const LinearShape shape{.in = 9, .out = 4, .bias = bias, .hidden = hidden, .activation = activation};
        SCOPED_TRACE(shape.description() + ", " + std::to_string(rows) + " rows");
        Model model(device(), shape);
        fill(model);
        const Floats x = random_floats(rows * 9, 1), target = random_floats(rows * 4, 2);
        Floats weights = weighted ? random_floats(rows, 3) : Floats{};
        for (float& weight : weights) weight = std::abs(weight);
        OnDevice x_there(device(), x), target_there(device(), target), weights_there(device(), weights);
        const Batch batch{rows, x_there.data(), target_there.data(), weighted ? weights_there.data() : nullptr};
        const Reference expected = reference_of(model, matrix(x, rows, 9), matrix(target, rows, 4), weights);

        OnDevice outputs(device(), Floats(static_cast<std::size_t>(rows * 4), NAN));
        model.forward(rows, batch.x, outputs.data());
        expect_near(outputs.values(), expected.outputs);

        std::vector<std::int64_t> ready;
        // Once overwritten, once added to.
        for (int times = 1; times <= 2; ++times) {
          model.backward(batch, 0.5F, times == 2, nullptr, [&](std::int64_t offset) { ready.push_back(offset); });
          const Floats gradients = on_host(device(), model.gradients());
          const auto slice = [&](std::int64_t offset, std::int64_t numel) {
            return Floats(gradients.begin() + offset, gradients.begin() + offset + numel);
          };
          for (std::size_t i = 0; i < hidden.size() + 1; ++i) {
            const LinearLayer& layer = model.layout().layers()[i];
            expect_near(slice(layer.weight, layer.in * layer.out), 0.5 * times * expected.weight_gradient[i]);
            if (bias) expect_near(slice(layer.bias, layer.out), 0.5 * times * expected.bias_gradient[i]);
          }
          EXPECT_NEAR(static_cast<double>(gradients[static_cast<std::size_t>(model.layout().numel())]) /
                          (0.5 * times * expected.loss),
                      1, 2e-6);
        }
        ASSERT_EQ(ready.size(), 2 * (hidden.size() + 1));
        EXPECT_EQ(ready[0], model.layout().layers().back().weight);
        EXPECT_TRUE(std::is_sorted(ready.rbegin(), ready.rend() - static_cast<std::ptrdiff_t>(hidden.size() + 1)));
        EXPECT_EQ(ready.back(), 0);
        Buffer<double> sum(device(), 1);
        model.loss_sum(batch, sum.data());
        double loss = 0;
        sum.download({&loss, 1});
        EXPECT_NEAR(loss / expected.loss, 1, 2e-6);
      }
    }
  }
}

TEST_P(Stacks, BatchesOfNoRowsAndOfMoreThanBeforeAreTaken) {
  const LinearShape shape{.in = 3, .out = 2, .hidden = {4}, .activation = Activation::gelu};
  Model model(device(), shape);
  fill(model);
  for (const std::int64_t rows : {0, 5, 2, 9}) {
    const Floats x = random_floats(rows * 3, 1), target = random_floats(rows * 2, 2);
    OnDevice x_there(device(), x), target_there(device(), target);
    model.backward({rows, x_there.data(), target_there.data()}, 1);
    const Reference expected = reference_of(model, matrix(x, rows, 3), matrix(target, rows, 2), {});
    const Floats gradients = on_host(device(), model.gradients());
    expect_near({gradients.begin(), gradients.begin() + 12}, expected.weight_gradient[0]);
  }
}

TEST_P(Stacks, PenaltyIsOfTheWeightsOfEveryLayer) {
  const LinearShape shape{.in = 3, .out = 2, .hidden = {5}};
  Model model(device(), shape);
  fill(model);
  Sgd optimizer(device(), model, {.lr = 1}, {.l2 = 0.25, .clip_grad_norm = std::nullopt});
  double squares = 0;
  for (const std::size_t slot : {0U, 2U}) {
    for (const float value : model.download(slot)) squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(optimizer.penalty(), 0.25 / 2 * squares, 1e-6);
  // With gradients of 0, w ← w - lr · l2 · w, and the biases stay.
  const Floats weight = model.download(2), bias = model.download(1);
  model.backward({}, 1);
  optimizer.step();
  EXPECT_EQ(model.download(1), bias);
  for (std::size_t i = 0; i < weight.size(); ++i) EXPECT_EQ(model.download(2)[i], weight[i] - 0.25F * weight[i]);
}

TEST_P(Stacks, AreNamedAsSequentialNamesThem) {
  const ParameterLayout stack({.in = 3, .out = 2, .hidden = {5, 4}});
  EXPECT_EQ(
      stack.description(),
      "0.weight [5, 3] f32, 0.bias [5] f32, 2.weight [4, 5] f32, 2.bias [4] f32, 4.weight [2, 4] f32, 4.bias [2] f32");
  EXPECT_THAT(message_of<UseError>([] { ParameterLayout({.in = 3, .out = 2, .heads = 2, .hidden = {5}}); }),
              ::testing::HasSubstr("heads side by side have no hidden layers"));
  EXPECT_THAT(message_of<UseError>([] { ParameterLayout({.in = 3, .out = 2, .hidden = {0}}); }),
              ::testing::HasSubstr("at least 1 input and 1 output, not 3 and 0"));
}

}  // namespace
}  // namespace ddp::test
