// exp and log1p as the losses compute them, against the standard library's in float64.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/elementary.hpp"

namespace ddp::kernels {
namespace {

/// In units in the last place of the float nearest to what is exact.
double ulps(float value, double exact) {
  const auto nearest = static_cast<float>(exact);
  const double unit = static_cast<double>(std::nextafter(nearest, std::numeric_limits<float>::infinity()) - nearest);
  return std::abs(static_cast<double>(value) - exact) / unit;
}

/// Over every 61st float between the two, of one sign.
template <class Function, class Exact>
double worst_between(float from, float to, const Function& function, const Exact& exact) {
  double worst = 0;
  const auto end = std::bit_cast<std::uint32_t>(to);
  for (auto bits = std::bit_cast<std::uint32_t>(from); bits < end; bits += 61) {
    const auto x = std::bit_cast<float>(bits);
    worst = std::max(worst, ulps(function(x), exact(static_cast<double>(x))));
  }
  return worst;
}

TEST(Elementary, ExponentialsOfNonpositiveNumbers) {
  const auto exponential = [](float x) { return exp_of_nonpositive(x); };
  EXPECT_LE(worst_between(-1e-30F, -86.0F, exponential, [](double x) { return std::exp(x); }), 2);
  EXPECT_EQ(exp_of_nonpositive(0.0F), 1);
  EXPECT_EQ(exp_of_nonpositive(-0.0F), 1);
  for (const float x : {-86.5F, -1e4F, -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(exp_of_nonpositive(x), exp_of_nonpositive(-86.0F)) << x;
  }
  EXPECT_TRUE(std::isnan(exp_of_nonpositive(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Elementary, LogarithmsOfOnePlusAPart) {
  const auto logarithm = [](float u) { return log1p_of_unit(u); };
  EXPECT_LE(worst_between(1e-30F, 1.0F, logarithm, [](double u) { return std::log1p(u); }), 2);
  EXPECT_EQ(log1p_of_unit(0.0F), 0);
  EXPECT_LE(ulps(log1p_of_unit(1.0F), std::log(2.0)), 2);
}

}  // namespace
}  // namespace ddp::kernels
