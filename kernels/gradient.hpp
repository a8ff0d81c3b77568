#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/host_device.hpp"

namespace ddp::kernels {

/// An optimizer's gradient of a parameter: that of the loss and of the penalty l2/2 · p².
DDP_HOST_DEVICE float penalized(float gradient, float parameter, float l2) {
  return gradient + l2 * parameter;
}

/// torch.nn.utils.clip_grad_norm_'s factor for gradients of this norm².
DDP_HOST_DEVICE float clip_factor(double square_sum, float max_norm) {
  const double factor = static_cast<double>(max_norm) / (std::sqrt(square_sum) + 1e-6);
  return factor < 1 ? static_cast<float>(factor) : 1.0F;
}

}  // namespace ddp::kernels
