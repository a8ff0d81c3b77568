#pragma once

#include "kernels/elementary.hpp"
#include "kernels/host_device.hpp"

// Losses of one output against its target, before the mean; of float or double.
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
  template <class T>
  DDP_HOST_DEVICE T value(T output, T target) const {
    const T residual = output - target;
    const T size = residual < 0 ? -residual : residual;
    return size < 1 ? T(0.5) * residual * residual : size - T(0.5);
  }
  template <class T>
  DDP_HOST_DEVICE T gradient(T output, T target) const {
    const T residual = output - target;
    return residual > 1 ? T(1) : residual < -1 ? T(-1) : residual;
  }
};

/// torch.nn.BCEWithLogitsLoss: -t log σ(z) - (1 - t) log(1 - σ(z)), as max(z, 0) - z t + log(1 + e^-|z|), which neither
/// overflows nor takes the logarithm of 0; dl/dz = σ(z) - t.
struct BceWithLogitsLoss {
  template <class T>
  DDP_HOST_DEVICE T value(T logit, T target) const {
    return (logit > 0 ? logit : T(0)) - logit * target + log1p_of_unit(exp_of_nonpositive(minus_size(logit)));
  }
  template <class T>
  DDP_HOST_DEVICE T gradient(T logit, T target) const {
    const T e = exp_of_nonpositive(minus_size(logit));
    return (logit < 0 ? e : T(1)) / (T(1) + e) - target;
  }

 private:
  template <class T>
  DDP_HOST_DEVICE static T minus_size(T logit) {
    return logit < 0 ? logit : -logit;
  }
};

}  // namespace ddp::kernels
