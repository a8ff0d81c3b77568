#include <linear_ddp/optim/optimizer.hpp>

#include <cmath>

#include <linear_ddp/optim/require.hpp>

namespace ddp {

Optimizer::Optimizer(Device& device, Model& model, double lr, const GradientOptions& options)
    : device_(device), square_sum_(device, 1), scalars_(device, std::tuple_size_v<Scalars>) {
  require(options.l2 >= 0, "--l2 may not be negative");
  require(!options.clip_grad_norm || *options.clip_grad_norm > 0, "--clip-grad-norm must be above 0");
  set_lr(lr);
  gradient_.numel = model.layout().numel();
  gradient_.parameters = model.parameters().data();
  gradient_.gradients = model.gradients().data();
  gradient_.penalized = model.layout().slots().front().numel;
  gradient_.l2 = static_cast<float>(options.l2);
  if (options.clip_grad_norm) {
    gradient_.max_norm = static_cast<float>(*options.clip_grad_norm);
    gradient_.square_sum = square_sum_.data();
  }
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
  if (gradient_.square_sum != nullptr) device_.square_sum(gradient_, square_sum_.data());
  update(gradient_, scalars_.data());
}

double Optimizer::penalty() {
  if (gradient_.l2 == 0) return 0;
  Gradient weights;
  weights.numel = gradient_.penalized;
  weights.parameters = gradient_.parameters;
  weights.gradients = gradient_.parameters;
  device_.square_sum(weights, square_sum_.data());
  double sum = 0;
  square_sum_.download({&sum, 1});
  return static_cast<double>(gradient_.l2) / 2 * sum;
}

}  // namespace ddp
