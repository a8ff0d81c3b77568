#include <linear_ddp/optim/lbfgs.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void add(Vector& to, double factor, const Vector& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

double largest(const Vector& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

/// x, and what the function is there.
struct Point {
  Vector x, gradient;
  double value = 0;
};

/// The inverse Hessian, as the last steps tell it.
class History {
 public:
  explicit History(int pairs) : most_(static_cast<std::size_t>(pairs)) {}

  void add_pair(const Point& from, const Point& to) {
    Pair pair{to.x, to.gradient, 0};
    add(pair.step, -1, from.x);
    add(pair.change, -1, from.gradient);
    const double curvature = dot(pair.step, pair.change);
    // Rounding may tell of no curvature at all, or of a negative one.
    if (!(curvature > 1e-12 * std::sqrt(dot(pair.step, pair.step) * dot(pair.change, pair.change)))) return;
    pair.inverse = 1 / curvature;
    scale_ = curvature / dot(pair.change, pair.change);
    pairs_.push_back(std::move(pair));
    if (pairs_.size() > most_) pairs_.pop_front();
  }
  [[nodiscard]] bool empty() const { return pairs_.empty(); }
  void clear() {
    pairs_.clear();
    scale_ = 1;
  }

  [[nodiscard]] Vector direction(const Vector& gradient) const {
    Vector d = gradient;
    std::vector<double> factors;
    for (auto pair = pairs_.rbegin(); pair != pairs_.rend(); ++pair) {
      factors.push_back(pair->inverse * dot(pair->step, d));
      add(d, -factors.back(), pair->change);
    }
    for (double& value : d) value *= -scale_;
    for (const Pair& pair : pairs_) {
      const double factor = factors.back() + pair.inverse * dot(pair.change, d);
      add(d, -factor, pair.step);
      factors.pop_back();
    }
    return d;
  }

 private:
  struct Pair {
    Vector step, change;
    double inverse;  ///< of their product
  };
  std::size_t most_;
  double scale_ = 1;
  std::deque<Pair> pairs_;
};

class Search {
 public:
  Search(const Objective& objective, const LbfgsOptions& options) : objective_(objective), options_(options) {}

  [[nodiscard]] std::int64_t evaluations() const { return evaluations_; }

  [[nodiscard]] Point at(Vector x) {
    Point point{std::move(x), {}, 0};
    point.gradient.resize(point.x.size());
    point.value = objective_(point.x, point.gradient);
    ++evaluations_;
    return point;
  }

  /// Where to go from `from` along a direction of descent; the length of the step is left in `step`, which is where it
  /// begins to look. False when there is nothing lower.
  bool line(const Point& from, const Vector& direction, double& step, Point& to) {
    constexpr double decrease = 1e-4, curvature = 0.9;
    constexpr int most = 40;
    const double slope = dot(from.gradient, direction);
    const double rounding = options_.rounding * std::abs(from.value);
    if (!(slope < 0)) return false;
    struct End {
      double step, value, slope;
    };
    End low{0, from.value, slope}, high{std::numeric_limits<double>::infinity(), 0, 0};
    Point best;
    double best_step = 0;
    for (int i = 0; i < most; ++i) {
      Vector x = from.x;
      add(x, step, direction);
      to = at(std::move(x));
      const End now{step, to.value, dot(to.gradient, direction)};
      const bool finite = std::isfinite(now.value) && std::isfinite(now.slope);
      const bool lower = finite && now.value <= from.value + decrease * step * slope;
      const bool flat = finite && now.value <= from.value + rounding && now.slope <= (2 * decrease - 1) * slope;
      if ((lower || flat) && std::abs(now.slope) <= -curvature * slope) return true;
      if (finite && now.value < from.value && (best.x.empty() || now.value < best.value)) {
        best = to;
        best_step = step;
      }
      const bool too_far = !finite || now.slope >= 0 || now.value > from.value + rounding + decrease * step * slope;
      (too_far ? high : low) = now;
      if (high.step == std::numeric_limits<double>::infinity()) {
        step *= 4;
      } else {
        if (high.step - low.step <= 1e-12 * high.step) break;
        step = between(low, high);
      }
    }
    if (best.x.empty()) return false;
    to = std::move(best);
    step = best_step;
    return true;
  }

 private:
  /// Where the line through both slopes is 0, kept away from the ends; the middle where a slope says nothing.
  template <class End>
  static double between(const End& low, const End& high) {
    const double width = high.step - low.step;
    const double secant = low.step - low.slope * width / (high.slope - low.slope);
    const bool sensible =
        std::isfinite(high.slope) && std::isfinite(high.value) && high.slope > 0 && std::isfinite(secant);
    return sensible ? std::clamp(secant, low.step + 0.1 * width, high.step - 0.1 * width) : low.step + width / 2;
  }

  const Objective& objective_;
  const LbfgsOptions& options_;
  std::int64_t evaluations_ = 0;
};

}  // namespace

LbfgsResult minimize_lbfgs(std::vector<double>& x, const Objective& objective, const LbfgsOptions& options,
                           const std::function<bool(const LbfgsReport&, std::span<const double> x)>& report) {
  using End = LbfgsResult::End;
  Search search(objective, options);
  History history(options.history);
  Point now = search.at(std::move(x)), next;
  if (!std::isfinite(now.value)) throw Error(Status::failed, "the function is not finite where the search begins");
  LbfgsReport told{0, 1, now.value, largest(now.gradient), 0};
  const auto ends = [&](End end) {
    told.evaluations = search.evaluations();
    x = std::move(now.x);
    return LbfgsResult{told, end};
  };
  constexpr int most_flat = 3;  // so many iterations in a row lowered the function by less than its rounding
  for (int flat = 0;;) {
    if (told.gradient_norm <= options.gradient_tolerance) return ends(End::gradient);
    if (told.iteration == options.max_iterations) return ends(End::iterations);
    Vector direction = history.direction(now.gradient);
    double step = history.empty() ? std::min(1.0, 1 / std::sqrt(dot(now.gradient, now.gradient))) : 1.0;
    if (!search.line(now, direction, step, next)) {
      if (history.empty()) return ends(End::rounding);
      history.clear();  // what was learnt may be rounding: once more, straight down
      continue;
    }
    history.add_pair(now, next);
    const double before = now.value;
    std::swap(now, next);
    told = {told.iteration + 1, search.evaluations(), now.value, largest(now.gradient), step};
    if (report && report(told, now.x)) return ends(End::asked);
    const double change = before - now.value;
    if (options.relative_tolerance > 0 && change <= options.relative_tolerance * std::abs(now.value)) {
      return ends(End::value);
    }
    flat = change <= options.rounding * std::abs(now.value) ? flat + 1 : 0;
    if (flat == most_flat && told.gradient_norm > options.gradient_tolerance) return ends(End::rounding);
  }
}

}  // namespace ddp
