#include <linear_ddp/optim/optimizer.hpp>

#include <cmath>
#include <utility>

#include <linear_ddp/optim/require.hpp>

namespace ddp {

namespace {

/// Without a penalty neighbours are updated alike: as one.
std::vector<Gradient> joined(const std::vector<Gradient>& ranges) {
  std::vector<Gradient> joined;
  for (const Gradient& range : ranges) {
    if (!joined.empty() && joined.back().parameters + joined.back().numel == range.parameters) {
      joined.back().numel += range.numel;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

}  // namespace

Optimizer::Optimizer(Device& device, Model& model, double lr, const GradientOptions& options, std::int64_t head)
    : device_(device),
      ranges_(options.l2 == 0 ? joined(model.ranges(head)) : model.ranges(head)),
      square_sum_(device, 1),
      scalars_(device, std::tuple_size_v<Scalars>) {
  require(options.l2 >= 0, "--l2 may not be negative");
  require(!options.clip_grad_norm || *options.clip_grad_norm > 0, "--clip-grad-norm must be above 0");
  set_lr(lr);
  for (Gradient& range : ranges_) {
    range.l2 = static_cast<float>(options.l2);
    if (!options.clip_grad_norm) continue;
    range.max_norm = static_cast<float>(*options.clip_grad_norm);
    range.square_sum = square_sum_.data();
  }
}

std::int64_t Optimizer::numel() const {
  std::int64_t sum = 0;
  for (const Gradient& range : ranges_) sum += range.numel;
  return sum;
}

void Optimizer::set_lr(double lr) {
  require(lr >= 0 && std::isfinite(lr), "the learning rate (--lr) may not be negative");
  lr_ = lr;
}

void Optimizer::prepare() {
  const Scalars scalars = next_scalars();
  if (scalars == sent_) return;
  scalars_.upload(scalars);
  sent_ = scalars;
}

void Optimizer::update() {
  const bool clips = ranges_.front().square_sum != nullptr;
  for (std::size_t i = 0; clips && i < ranges_.size(); ++i) {
    device_.square_sum(ranges_[i], square_sum_.data(), i > 0);
  }
  update(ranges_, scalars_.data());
}

double Optimizer::penalty() {
  const float l2 = ranges_.front().l2;
  if (l2 == 0) return 0;
  bool adds = false;
  for (const Gradient& range : ranges_) {
    if (range.penalized == 0) continue;
    device_.square_sum({.numel = range.penalized, .parameters = range.parameters, .gradients = range.parameters},
                       square_sum_.data(), std::exchange(adds, true));
  }
  double sum = 0;
  square_sum_.download({&sum, 1});
  return static_cast<double>(l2) / 2 * sum;
}

}  // namespace ddp
