// L-BFGS on functions whose minima are known, also where their values are rounded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/optim/lbfgs.hpp>

namespace ddp {
namespace {

using End = LbfgsResult::End;

/// Minimum 0 at (1, 1, …), along a curved valley.
double rosenbrock(std::span<double> x, std::span<double> g) {
  double value = 0;
  std::fill(g.begin(), g.end(), 0.0);
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const double a = x[i + 1] - x[i] * x[i], b = 1 - x[i];
    value += 100 * a * a + b * b;
    g[i] += -400 * a * x[i] - 2 * b;
    g[i + 1] += 200 * a;
  }
  return value;
}

TEST(Lbfgs, FindsTheEndOfTheValley) {
  for (const std::size_t n : {2U, 10U, 100U}) {
    std::vector<double> x(n, -1.2);
    const auto result = minimize_lbfgs(x, rosenbrock, {.gradient_tolerance = 1e-10});
    EXPECT_EQ(result.end, End::gradient);
    EXPECT_LT(result.last.iteration, 50 + 6 * static_cast<std::int64_t>(n));
    EXPECT_LT(result.last.evaluations, 2 * result.last.iteration + 20);
    for (const double value : x) EXPECT_NEAR(value, 1, 1e-9);
  }
}

/// Σ c_i x_i² / 2 with c from 1 to 1000.
double stretched(std::span<double> x, std::span<double> g) {
  double value = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double c = std::pow(10.0, 3.0 * static_cast<double>(i) / static_cast<double>(x.size() - 1));
    g[i] = c * x[i];
    value += g[i] * x[i] / 2;
  }
  return value;
}

TEST(Lbfgs, OfAStretchedBowl) {
  std::vector<double> x(30, 1.0);
  const auto result = minimize_lbfgs(x, stretched, {.gradient_tolerance = 1e-9});
  EXPECT_EQ(result.end, End::gradient);
  EXPECT_LT(result.last.value, 1e-15);
}

/// A value that a float holds, near 1: differences below 6e-8 are lost, and the slopes are all there is.
TEST(Lbfgs, GoesOnBelowTheRoundingOfTheValue) {
  const Objective rounded = [](std::span<double> x, std::span<double> g) {
    return static_cast<double>(static_cast<float>(1 + stretched(x, g)));
  };
  std::vector<double> x(10, 1e-2);
  const auto result = minimize_lbfgs(x, rounded, {.gradient_tolerance = 1e-7, .rounding = 1e-7});
  EXPECT_LT(result.last.evaluations, 5 * (result.last.iteration + 1)) << "no search for what cannot be seen";
  std::vector<double> g(10);
  EXPECT_LT(stretched(x, g), 1e-7);
}

TEST(Lbfgs, ShortensAStepBeyondWhatTheFunctionHolds) {
  const Objective barrier = [](std::span<double> x, std::span<double> g) {  // minimum at 1
    g[0] = 1 - 1 / x[0];
    return x[0] <= 0 ? std::numeric_limits<double>::quiet_NaN() : x[0] - std::log(x[0]);
  };
  std::vector<double> x{50};
  EXPECT_EQ(minimize_lbfgs(x, barrier, {.gradient_tolerance = 1e-12}).end, End::gradient);
  EXPECT_NEAR(x[0], 1, 1e-11);
}

TEST(Lbfgs, EndsWhenItIsTold) {
  std::vector<double> x(5, -1.2);
  EXPECT_EQ(minimize_lbfgs(x, rosenbrock, {.max_iterations = 3}).last.iteration, 3);
  std::vector<double> values;
  const auto result = minimize_lbfgs(x, rosenbrock, {}, [&](const LbfgsReport& report, std::span<const double> at) {
    values.push_back(report.value);
    EXPECT_EQ(at.size(), 5U);
    return report.iteration == 5;
  });
  EXPECT_EQ(result.end, End::asked);
  EXPECT_EQ(values.size(), 5U);
  EXPECT_TRUE(std::is_sorted(values.rbegin(), values.rend()));
  std::vector<double> at_once{1, 1, 1};
  EXPECT_EQ(minimize_lbfgs(at_once, rosenbrock, {}).last.iteration, 0);
  EXPECT_EQ(minimize_lbfgs(x, rosenbrock, {.relative_tolerance = 0.5}).end, End::value);
  std::vector<double> nowhere{std::numeric_limits<double>::infinity(), 1};
  EXPECT_THROW((void)minimize_lbfgs(nowhere, rosenbrock, {}), Error);
}

}  // namespace
}  // namespace ddp
