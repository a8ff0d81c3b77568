#pragma once

#include <cstdint>

#include "kernels/host_device.hpp"

namespace ddp::kernels {

/// torch.nn.CrossEntropyLoss of one row of logits z against class c, before the mean. With K classes, weights w (1 each
/// without), label smoothing ε and logsumexp S:
///
///   l = (1 - ε) w_c (S - z_c) + ε/K Σ_k w_k (S - z_k)
///   dl/dz_k = ((1 - ε) w_c + ε/K Σ_j w_j) softmax(z)_k - (1 - ε) w_c [k = c] - ε/K w_k
struct CrossEntropy {
  std::int64_t classes;
  float label_smoothing;
  const float* class_weight;  ///< [classes], or null

  DDP_HOST_DEVICE bool is_class(float target) const { return target >= 0 && target < static_cast<float>(classes); }
  DDP_HOST_DEVICE float weight_of(std::int64_t k) const { return class_weight == nullptr ? 1.0F : class_weight[k]; }
  /// The factors of S - z: that of the row's own class, and of class k besides.
  DDP_HOST_DEVICE float hard(std::int64_t own) const { return (1.0F - label_smoothing) * weight_of(own); }
  DDP_HOST_DEVICE float soft(std::int64_t k) const {
    return label_smoothing / static_cast<float>(classes) * weight_of(k);
  }
};

}  // namespace ddp::kernels
