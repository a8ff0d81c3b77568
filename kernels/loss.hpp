#pragma once

#include "kernels/host_device.hpp"

namespace ddp::kernels {

/// torch.nn.MSELoss before its mean: l(y, t) = (y - t)², dl/dy = 2 (y - t).
struct MseLoss {
  template <class T>
  DDP_HOST_DEVICE T value(T output, T target) const {
    return (output - target) * (output - target);
  }
  template <class T>
  DDP_HOST_DEVICE T gradient(T output, T target) const {
    return 2 * (output - target);
  }
};

}  // namespace ddp::kernels
