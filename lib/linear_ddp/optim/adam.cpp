#include <linear_ddp/optim/adam.hpp>

#include <cmath>

#include <linear_ddp/optim/require.hpp>

namespace ddp {

Adam::Adam(Device& device, Model& model, const AdamOptions& options, const GradientOptions& gradient, std::int64_t head)
    : Optimizer(device, model, options.lr, gradient, head), options_(options) {
  require(0 <= options.beta1 && options.beta1 < 1 && 0 <= options.beta2 && options.beta2 < 1,
          "--betas must be two numbers from 0 to below 1");
  require(options.eps >= 0, "--eps may not be negative");
  require(options.weight_decay >= 0, "--weight-decay may not be negative");
  update_ = {.mean = remember("exp_avg"),
             .square = remember("exp_avg_sq"),
             .greatest = options.amsgrad ? remember("max_exp_avg_sq") : nullptr,
             .beta1 = options.beta1,
             .beta2 = options.beta2,
             .eps = options.eps,
             .weight_decay = options.decoupled ? 0 : options.weight_decay};
}

Optimizer::Scalars Adam::next_scalars() {
  const auto t = static_cast<double>(steps());
  const double decay = options_.decoupled ? 1 - lr() * options_.weight_decay : 1;
  const double step_size = lr() / (1 - std::pow(options_.beta1, t));
  const double corrected = std::sqrt(1 - std::pow(options_.beta2, t));
  return {static_cast<float>(decay), static_cast<float>(step_size), static_cast<float>(corrected)};
}

void Adam::update(std::span<const Gradient> ranges, const float* scalars) {
  AdamUpdate of_range = update_;
  for (const Gradient& range : ranges) {
    device_.adam_update(range, of_range, scalars);
    of_range.mean += range.numel;
    of_range.square += range.numel;
    if (of_range.greatest != nullptr) of_range.greatest += range.numel;
  }
}

}  // namespace ddp
