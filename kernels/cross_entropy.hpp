#pragma once

#include <cstdint>

#include "kernels/host_device.hpp"

namespace ddp::kernels {

/// torch.nn.CrossEntropyLoss of one row of logits z against class c, before the mean. With K classes, weights w (1 each
/// without), label smoothing ε and logsumexp S:
///
///   l = (1 - ε) w_c (S - z_c) + ε/K Σ_k w_k (S - z_k)
///   dl/dz_k = ((1 - ε) w_c + ε/K Σ_j w_j) softmax(z)_k - (1 - ε) w_c [k = c] - ε/K w_k
template <class T>
struct CrossEntropyOf {
  std::int64_t classes;
  T label_smoothing;
  const T* class_weight;  ///< [classes], or null

  DDP_HOST_DEVICE bool is_class(T target) const { return target >= 0 && target < static_cast<T>(classes); }
  DDP_HOST_DEVICE T weight_of(std::int64_t k) const { return class_weight == nullptr ? T(1) : class_weight[k]; }
  /// The factors of S - z: that of the row's own class, and of class k besides.
  DDP_HOST_DEVICE T hard(std::int64_t own) const { return (T(1) - label_smoothing) * weight_of(own); }
  DDP_HOST_DEVICE T soft(std::int64_t k) const { return label_smoothing / static_cast<T>(classes) * weight_of(k); }
};
using CrossEntropy = CrossEntropyOf<float>;

}  // namespace ddp::kernels
