#include <linear_ddp/optim/lbfgs.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

using End = LbfgsResult::End;
using Vector = std::vector<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Wolfe's conditions: how much of the decrease that the slope promises, and how much of the slope may be left.
constexpr double decrease = 1e-4, curvature = 0.9;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void add(Vector& to, double factor, const Vector& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

double largest(const Vector& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

}  // namespace

LbfgsSearch::LbfgsSearch(std::vector<double> x, const LbfgsOptions& options) : options_(options) {
  next_.gradient.resize(x.size());
  next_.x = std::move(x);
}

void LbfgsSearch::stop() noexcept {
  if (!end_) end_ = End::asked;
}

bool LbfgsSearch::tell(double value) {
  next_.value = value;
  if (++evaluations_ == 1) {
    if (!std::isfinite(value))
      throw AgreedError(Status::failed,
                        "the function is not finite where the search begins: use other first parameters "
                        "(--init), and --standardize when features differ in scale");
    now_ = next_;
    report_ = {0, 1, value, largest(now_.gradient), 0};
    start_iteration();
    return false;
  }
  switch (judge()) {
    case Judgement::good:
      finish_iteration();
      return true;
    case Judgement::elsewhere:
      look_at(step_);
      return false;
    case Judgement::hopeless:
      break;
  }
  if (best_step_ > 0) {
    next_ = best_;
    step_ = best_step_;
    finish_iteration();
    return true;
  }
  if (pairs_.empty()) {
    end_ = End::rounding;
    report_.evaluations = evaluations_;
  } else {
    pairs_.clear();  // what was learnt may be rounding: once more, straight down
    scale_ = 1;
    start_line();
  }
  return false;
}

void LbfgsSearch::start_iteration() {
  if (report_.gradient_norm <= options_.gradient_tolerance &&
      (options_.gradient_tolerance_of_value == infinity ||
       report_.gradient_norm <= options_.gradient_tolerance_of_value * std::abs(now_.value))) {
    end_ = End::gradient;
  } else if (report_.iteration == options_.max_iterations) {
    end_ = End::iterations;
  } else {
    start_line();
  }
}

void LbfgsSearch::finish_iteration() {
  keep_pair();
  const double change = now_.value - next_.value, noise = options_.rounding * std::abs(next_.value);
  std::swap(now_, next_);
  report_ = {report_.iteration + 1, evaluations_, now_.value, largest(now_.gradient), step_};
  flat_ = change <= noise ? flat_ + 1 : 0;
  start_iteration();
  if (end_ == End::gradient) return;
  constexpr int most_flat = 3;
  if (options_.relative_tolerance > 0 && change <= options_.relative_tolerance * std::abs(now_.value)) {
    end_ = End::value;
  } else if (flat_ == most_flat) {
    end_ = End::rounding;
  }
}

void LbfgsSearch::start_line() {
  direction_ = quasi_newton_direction();
  slope_ = dot(now_.gradient, direction_);
  if (!(slope_ < 0) && !pairs_.empty()) {
    pairs_.clear();
    scale_ = 1;
    direction_ = quasi_newton_direction();
    slope_ = dot(now_.gradient, direction_);
  }
  if (!(slope_ < 0)) {
    end_ = End::rounding;
    return;
  }
  low_ = {0, now_.value, slope_};
  high_ = {infinity, 0, 0};
  best_step_ = 0;
  tries_ = 0;
  look_at(pairs_.empty() ? std::min(1.0, 1 / std::sqrt(dot(now_.gradient, now_.gradient))) : 1.0);
}

void LbfgsSearch::look_at(double step) {
  step_ = step;
  next_.x = now_.x;
  add(next_.x, step, direction_);
}

/// Of next_, at step_; of a place that is not good, step_ becomes the one to look at.
LbfgsSearch::Judgement LbfgsSearch::judge() {
  const double rounding = options_.rounding * std::abs(now_.value);
  const Place here{step_, next_.value, dot(next_.gradient, direction_)};
  const bool finite = std::isfinite(here.value) && std::isfinite(here.slope);
  const bool lower = finite && here.value <= now_.value + decrease * step_ * slope_;
  const bool flat = finite && here.value <= now_.value + rounding && here.slope <= (2 * decrease - 1) * slope_;
  if ((lower || flat) && std::abs(here.slope) <= -curvature * slope_) return Judgement::good;
  if (finite && here.value < (best_step_ > 0 ? best_.value : now_.value)) {
    best_ = next_;
    best_step_ = step_;
  }
  const bool too_far = !finite || here.slope >= 0 || here.value > now_.value + rounding + decrease * step_ * slope_;
  (too_far ? high_ : low_) = here;
  constexpr int most_tries = 40;
  if (++tries_ == most_tries) return Judgement::hopeless;
  if (high_.step == infinity) {
    step_ *= 4;
    return Judgement::elsewhere;
  }
  // Where the line through both slopes is 0, kept away from the ends; the middle where a slope says nothing.
  const double width = high_.step - low_.step;
  if (width <= 1e-12 * high_.step) return Judgement::hopeless;
  const double secant = low_.step - low_.slope * width / (high_.slope - low_.slope);
  const bool sensible =
      std::isfinite(high_.slope) && std::isfinite(high_.value) && high_.slope > 0 && std::isfinite(secant);
  step_ = sensible ? std::clamp(secant, low_.step + 0.1 * width, high_.step - 0.1 * width) : low_.step + width / 2;
  return Judgement::elsewhere;
}

void LbfgsSearch::keep_pair() {
  Pair pair{next_.x, next_.gradient, 0};
  add(pair.step, -1, now_.x);
  add(pair.change, -1, now_.gradient);
  const double product = dot(pair.step, pair.change), change = dot(pair.change, pair.change);
  // Rounding may tell of no curvature at all, or of a negative one.
  if (!(product > 1e-12 * std::sqrt(dot(pair.step, pair.step) * change))) return;
  pair.inverse = 1 / product;
  scale_ = product / change;
  pairs_.push_back(std::move(pair));
  if (std::cmp_greater(pairs_.size(), options_.history)) pairs_.pop_front();
}

std::vector<double> LbfgsSearch::quasi_newton_direction() const {
  Vector d = now_.gradient;
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

LbfgsResult minimize_lbfgs(std::vector<double>& x, const Objective& objective, const LbfgsOptions& options,
                           const std::function<bool(const LbfgsReport&, std::span<const double> x)>& report) {
  LbfgsSearch search(std::move(x), options);
  while (!search.end()) {
    const bool ends_iteration = search.tell(objective(search.point(), search.gradient()));
    if (ends_iteration && report && report(search.report(), search.x())) search.stop();
  }
  x.assign(search.x().begin(), search.x().end());
  return {search.report(), *search.end()};
}

}  // namespace ddp
