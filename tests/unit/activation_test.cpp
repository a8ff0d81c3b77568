// Activations as layers compute them, and their derivatives, against the definitions in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <linear_ddp/nn/activation.hpp>
#include "kernels/activation.hpp"

namespace ddp {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

double distribution(double z) {
  return std::erfc(-z / std::sqrt(2.0)) / 2;
}
double density(double z) {
  return std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
}

/// visit(z) for small and large numbers of both signs.
template <class Visit>
void each_number(const Visit& visit) {
  for (int i = -13000; i <= 13000; ++i) visit(static_cast<float>(i) / 1000);
  for (float size = 1e-38F; size < 1e37F; size *= 1.7F) {
    visit(size);
    visit(-size);
  }
}

TEST(Activations, TanhIsRightInItsLastDigits) {
  const kernels::Tanh tanh;
  each_number([&](float z) {
    const double exact = std::tanh(static_cast<double>(z));
    EXPECT_NEAR(static_cast<double>(tanh.value(z)), exact, 2e-7 * std::abs(exact)) << z;
    EXPECT_NEAR(static_cast<double>(tanh.gradient(tanh.value(z))), 1 - exact * exact, 3e-7) << z;
  });
  EXPECT_EQ(tanh.value(infinity), 1);
  EXPECT_EQ(tanh.value(-infinity), -1);
  EXPECT_TRUE(std::isnan(tanh.value(nan)));
}

TEST(Activations, GeluIsTheExactOne) {
  const kernels::Gelu gelu;
  each_number([&](float z) {
    const auto exact = static_cast<double>(z);
    EXPECT_NEAR(static_cast<double>(gelu.value(z)), exact * distribution(exact),
                3e-7 * std::max(1e-30, std::abs(exact)))
        << z;
    EXPECT_NEAR(static_cast<double>(gelu.gradient(z)), distribution(exact) + exact * density(exact), 5e-7) << z;
    if (z < 0 && z > -6) {
      EXPECT_NEAR(static_cast<double>(gelu.value(z)) / (exact * distribution(exact)), 1, 1e-5) << z;
    }
  });
  EXPECT_EQ(gelu.value(infinity), infinity);
  EXPECT_TRUE(std::isnan(gelu.value(nan)));
}

TEST(Activations, ReluKeepsWhatIsNoNumber) {
  const kernels::Relu relu;
  EXPECT_EQ(relu.value(-2.0F), 0);
  EXPECT_EQ(relu.value(2.0F), 2);
  EXPECT_EQ(relu.gradient(0.0F), 0);  // as PyTorch's at 0
  EXPECT_EQ(relu.gradient(2.0F), 1);
  EXPECT_TRUE(std::isnan(relu.value(nan)));
}

TEST(Activations, InFloat64AreTheDefinitions) {
  std::vector<double> values{-1.5, 0.25, 3};
  activate(Activation::gelu, values);
  EXPECT_DOUBLE_EQ(values[0], -1.5 * distribution(-1.5));
  activate(Activation::tanh, values);
  EXPECT_DOUBLE_EQ(values[2], std::tanh(3 * distribution(3)));
  activate(Activation::relu, values);
  EXPECT_EQ(values[0], 0);
}

}  // namespace
}  // namespace ddp
