#pragma once

#include "kernels/host_device.hpp"

namespace ddp::kernels {

/// One scalar of torch.optim.SGD.step, in PyTorch's order of operations
/// (https://pytorch.org/docs/stable/generated/torch.optim.SGD.html).
template <class T>
struct SgdStep {
  T lr, momentum, dampening, weight_decay;
  bool nesterov;
  bool first;  ///< the first step of all: the momentum buffer becomes the gradient, undampened

  DDP_HOST_DEVICE T without_momentum(T parameter, T gradient) const {
    return parameter - lr * (gradient + weight_decay * parameter);
  }

  DDP_HOST_DEVICE T with_momentum(T parameter, T gradient, T& buffer) const {
    gradient += weight_decay * parameter;
    buffer = first ? gradient : momentum * buffer + (T{1} - dampening) * gradient;
    return parameter - lr * (nesterov ? gradient + momentum * buffer : buffer);
  }
};

}  // namespace ddp::kernels
