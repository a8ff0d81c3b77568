#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace ddp {

struct LbfgsOptions {
  std::int64_t max_iterations = 1000;
  int history = 10;                  ///< pairs of steps and changes of the gradient that are kept
  double gradient_tolerance = 1e-5;  ///< ends when no component of the gradient is above
  double relative_tolerance = 0;     ///< above 0: ends when an iteration lowers the function by no more than so much
  double rounding = 1e-15;           ///< of the function's values, of which differences below say nothing
};

struct LbfgsReport {
  std::int64_t iteration, evaluations;
  double value, gradient_norm;  ///< the largest component's amount
  double step;                  ///< of the line search, 1: the quasi-Newton step
};

struct LbfgsResult {
  enum class End { gradient, value, rounding, iterations, asked };
  LbfgsReport last;
  End end;
};

/// f(x), and its gradient. May round x to what it computes with. Throws for a value that is not finite at the start;
/// not finite later, it makes the step shorter.
using Objective = std::function<double(std::span<double> x, std::span<double> gradient)>;

/// Minimises a smooth function by L-BFGS (Nocedal, Wright, 2006, algorithm 7.4) with a line search for the strong Wolfe
/// conditions (1e-4, 0.9), or, where differences of the function are below its rounding, for the approximate ones of
/// Hager and Zhang (2005), which look at slopes alone. All of it in float64 on the host. `report` is called after each
/// iteration with where it is, and ends the search by returning true. `x` is where it starts and where it ends.
LbfgsResult minimize_lbfgs(std::vector<double>& x, const Objective& objective, const LbfgsOptions& options,
                           const std::function<bool(const LbfgsReport&, std::span<const double> x)>& report = {});

}  // namespace ddp
