#pragma once

#include <cmath>

#include "kernels/host_device.hpp"

namespace ddp::kernels {

/// What Adam uses at one step t, computed on the host in float64 from the learning rate.
struct AdamScalars {
  float decay;      ///< AdamW: 1 - lr · weight_decay; Adam: 1
  float step_size;  ///< lr / (1 - beta1^t)
  float corrected;  ///< √(1 - beta2^t)
};

/// One scalar of torch.optim.Adam.step and AdamW.step, in PyTorch's order of operations
/// (https://pytorch.org/docs/stable/generated/torch.optim.Adam.html).
struct AdamStep {
  float beta1, beta2;
  float rest1, rest2;  ///< 1 - beta, which float arithmetic would not give: 1 - 0.999F is 5e-5 off
  float eps;
  float weight_decay;  ///< added to the gradient; AdamW: 0

  static AdamStep from(double beta1, double beta2, double eps, double weight_decay) {
    const auto narrow = [](double value) { return static_cast<float>(value); };
    return {narrow(beta1), narrow(beta2), narrow(1 - beta1), narrow(1 - beta2), narrow(eps), narrow(weight_decay)};
  }

  /// `greatest` is amsgrad's, ignored without.
  template <bool amsgrad>
  DDP_HOST_DEVICE float next(const AdamScalars& now, float parameter, float gradient, float& mean, float& square,
                             float& greatest) const {
    gradient += weight_decay * parameter;
    parameter *= now.decay;
    mean = beta1 * mean + rest1 * gradient;
    square = beta2 * square + rest2 * gradient * gradient;
    if (amsgrad) greatest = greatest < square ? square : greatest;
    const float root = std::sqrt(amsgrad ? greatest : square);
    return parameter - now.step_size * (mean / (root / now.corrected + eps));
  }
};

}  // namespace ddp::kernels
