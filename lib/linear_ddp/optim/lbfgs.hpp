#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace ddp {

struct LbfgsOptions {
  std::int64_t max_iterations = 1000;
  int history = 10;                  ///< pairs of steps and changes of the gradient that are kept
  double gradient_tolerance = 1e-5;  ///< ends when no component of the gradient is above, nor …
  double gradient_tolerance_of_value = std::numeric_limits<double>::infinity();  ///< … above so much of the value
  double relative_tolerance = 0;  ///< above 0: ends when an iteration lowers the function by no more than so much
  double rounding = 1e-15;        ///< of the function's values, of which differences below say nothing
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

/// One search for the minimum of a smooth function by L-BFGS (Nocedal, Wright, 2006, algorithm 7.4) with a line search
/// for the strong Wolfe conditions (1e-4, 0.9), or, where differences of the function are below its rounding, for the
/// approximate ones of Hager and Zhang (2005), which look at slopes alone. All of it in float64 on the host. It asks
/// for an evaluation at a time, so that several searches may share theirs:
///
///   while (!search.end()) search.tell(f(search.point(), search.gradient()));
class LbfgsSearch {
 public:
  LbfgsSearch(std::vector<double> x, const LbfgsOptions& options);

  /// Where the function is wanted next. May be rounded to what it is computed with.
  [[nodiscard]] std::span<double> point() noexcept { return next_.x; }
  /// To be filled with its gradient there.
  [[nodiscard]] std::span<double> gradient() noexcept { return next_.gradient; }
  /// Takes its value there, the same on all ranks; true when that ends an iteration. Throws AgreedError for one that is
  /// not finite at the start; not finite later, it makes the step shorter.
  bool tell(double value);

  /// Nothing while it goes on.
  [[nodiscard]] std::optional<LbfgsResult::End> end() const noexcept { return end_; }
  /// As asked, unless it has ended already.
  void stop() noexcept;
  /// Where it has come to.
  [[nodiscard]] std::span<const double> x() const noexcept { return now_.x; }
  [[nodiscard]] const LbfgsReport& report() const noexcept { return report_; }

 private:
  /// x, and what the function is there.
  struct Point {
    std::vector<double> x, gradient;
    double value = 0;
  };
  /// A step and the change of the gradient by it.
  struct Pair {
    std::vector<double> step, change;
    double inverse;  ///< of their product
  };
  /// A place on the line that is searched.
  struct Place {
    double step, value, slope;
  };
  enum class Judgement { good, elsewhere, hopeless };

  void start_iteration();
  void finish_iteration();
  void start_line();
  void look_at(double step);
  [[nodiscard]] Judgement judge();
  void keep_pair();
  [[nodiscard]] std::vector<double> quasi_newton_direction() const;

  LbfgsOptions options_;
  Point now_, next_, best_;  ///< the best of a line, should none of its points be good
  LbfgsReport report_{};
  std::optional<LbfgsResult::End> end_;
  std::int64_t evaluations_ = 0;
  int flat_ = 0;  ///< iterations in a row that lowered the function by no more than its rounding

  std::deque<Pair> pairs_;
  double scale_ = 1;  ///< of the inverse Hessian before the pairs correct it

  std::vector<double> direction_;
  double slope_ = 0, step_ = 0, best_step_ = 0;  ///< of the line; best_step_ 0: none
  Place low_{}, high_{};                         ///< a good step is between them
  int tries_ = 0;
};

/// f(x), and its gradient. May round x to what it computes with.
using Objective = std::function<double(std::span<double> x, std::span<double> gradient)>;

/// A whole search. `report` is called after each iteration with where it is, and ends the search by returning true. `x`
/// is where it starts and where it ends.
LbfgsResult minimize_lbfgs(std::vector<double>& x, const Objective& objective, const LbfgsOptions& options,
                           const std::function<bool(const LbfgsReport&, std::span<const double> x)>& report = {});

}  // namespace ddp
