#pragma once

#include "kernels/elementary.hpp"
#include "kernels/host_device.hpp"

// Losses of one output against its target, before the mean.
namespace ddp::kernels {

/// torch.nn.MSELoss: l(y, t) = (y - t)², dl/dy = 2 (y - t).
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

/// torch.nn.HuberLoss with its default delta of 1: (y - t)² / 2 where |y - t| < 1, else |y - t| - 1/2.
struct HuberLoss {
  DDP_HOST_DEVICE float value(float output, float target) const {
    const float residual = output - target;
    const float size = residual < 0 ? -residual : residual;
    return size < 1 ? 0.5F * residual * residual : size - 0.5F;
  }
  DDP_HOST_DEVICE float gradient(float output, float target) const {
    const float residual = output - target;
    return residual > 1 ? 1.0F : residual < -1 ? -1.0F : residual;
  }
};

/// torch.nn.BCEWithLogitsLoss: -t log σ(z) - (1 - t) log(1 - σ(z)), as max(z, 0) - z t + log(1 + e^-|z|), which neither
/// overflows nor takes the logarithm of 0; dl/dz = σ(z) - t.
struct BceWithLogitsLoss {
  DDP_HOST_DEVICE float value(float logit, float target) const {
    return (logit > 0 ? logit : 0.0F) - logit * target + log1p_of_unit(exp_of_nonpositive(minus_size(logit)));
  }
  DDP_HOST_DEVICE float gradient(float logit, float target) const {
    const float e = exp_of_nonpositive(minus_size(logit));
    return (logit < 0 ? e : 1.0F) / (1.0F + e) - target;
  }

 private:
  DDP_HOST_DEVICE static float minus_size(float logit) { return logit < 0 ? logit : -logit; }
};

}  // namespace ddp::kernels
