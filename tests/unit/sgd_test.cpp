// torch.optim.SGD's formulas against closed forms, and its refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/optim/sgd.hpp>

namespace ddp {
namespace {

constexpr float start = 2, gradient = 0.5;
constexpr double lr = 0.1, momentum = 0.9;

/// The parameter after `steps` steps with the same gradient, from `start`.
double trained(const SgdOptions& options, int steps, float constant_gradient = gradient) {
  const auto device = make_cpu_device();
  Model model(*device, {3, 2, true});
  for (float& parameter : model.parameters()) parameter = start;
  for (float& value : model.gradients()) value = constant_gradient;
  Sgd optimizer(*device, model, options);
  for (int step = 0; step < steps; ++step) optimizer.step();
  for (const float parameter : model.parameters()) EXPECT_EQ(parameter, model.parameters()[0]);
  return static_cast<double>(model.parameters()[0]);
}

/// 20 float steps of numbers near 1 round by less than 20 ulp.
constexpr double rounding = 20 * 1.2e-7 * 8;

TEST(Sgd, PlainStepsSubtract) {
  EXPECT_NEAR(trained({.lr = lr}, 20), start - 20 * lr * gradient, rounding);
}

TEST(Sgd, MomentumSumsAGeometricSeries) {
  double expected = start;
  for (int k = 1; k <= 20; ++k) expected -= lr * gradient * (1 - std::pow(momentum, k)) / (1 - momentum);
  EXPECT_NEAR(trained({.lr = lr, .momentum = momentum}, 20), expected, rounding);
}

TEST(Sgd, TheFirstStepIsNotDampened) {
  // b_1 = g, and with g constant b_k = m^(k-1) g + (1 - d) g (1 - m^(k-1)) / (1 - m).
  constexpr double dampening = 0.3;
  double expected = start;
  for (int k = 1; k <= 20; ++k) {
    const double decayed = std::pow(momentum, k - 1);
    expected -= lr * gradient * (decayed + (1 - dampening) * (1 - decayed) / (1 - momentum));
  }
  EXPECT_NEAR(trained({.lr = lr, .momentum = momentum, .dampening = dampening}, 20), expected, rounding);
}

TEST(Sgd, NesterovLooksAhead) {
  double expected = start;
  for (int k = 1; k <= 20; ++k) {
    expected -= lr * gradient * (1 + momentum * (1 - std::pow(momentum, k)) / (1 - momentum));
  }
  EXPECT_NEAR(trained({.lr = lr, .momentum = momentum, .nesterov = true}, 20), expected, rounding);
}

TEST(Sgd, WeightDecayShrinksGeometrically) {
  EXPECT_NEAR(trained({.lr = lr, .weight_decay = 0.5}, 20, 0), start * std::pow(1 - lr * 0.5, 20), rounding);
}

TEST(Sgd, RefusesWhatPyTorchRefuses) {
  const auto device = make_cpu_device();
  Model model(*device, {3, 2, true});
  for (const SgdOptions& wrong :
       {SgdOptions{.lr = -1}, SgdOptions{.momentum = -1}, SgdOptions{.weight_decay = -1}, SgdOptions{.nesterov = true},
        SgdOptions{.momentum = 0.9, .dampening = 0.1, .nesterov = true}}) {
    EXPECT_THROW(Sgd(*device, model, wrong), UseError);
  }
}

}  // namespace
}  // namespace ddp
