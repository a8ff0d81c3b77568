#include <linear_ddp/optim/optimizer.hpp>

#include <cmath>

#include <linear_ddp/optim/require.hpp>

namespace ddp {

Optimizer::Optimizer(Device& device, Model& model, double lr, const GradientOptions& options, std::int64_t head)
    : device_(device),
      ranges_(model.ranges(head)),
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

float* Optimizer::remember(const char* name) {
  std::int64_t numel = 0;
  for (const Gradient& range : ranges_) numel += range.numel;
  return memory_.emplace_back(Memory{name, Buffer<float>(device_, numel)}).values.data();
}

void Optimizer::set_lr(double lr) {
  require(lr >= 0 && std::isfinite(lr), "the learning rate (--lr) may not be negative");
  lr_ = lr;
}

void Optimizer::prepare() {
  ++steps_;
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
  const Gradient& of_weights = ranges_.front();
  if (of_weights.l2 == 0) return 0;
  Gradient weights;
  weights.numel = of_weights.penalized;
  weights.parameters = of_weights.parameters;
  weights.gradients = of_weights.parameters;
  device_.square_sum(weights, square_sum_.data());
  double sum = 0;
  square_sum_.download({&sum, 1});
  return static_cast<double>(of_weights.l2) / 2 * sum;
}

}  // namespace ddp
