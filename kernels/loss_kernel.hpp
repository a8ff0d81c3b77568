#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/loss.hpp"

namespace ddp::kernels {

/// So many doubles of `partials` are enough for any number of elements. Not a number of this GPU's processors: the sum
/// is the same to the bit on every GPU.
inline constexpr int max_loss_partials = 1024;

struct LossArguments {
  std::int64_t numel = 0;
  float* y = nullptr;  ///< becomes scale · dl/dy when `gradient`
  const float* target = nullptr;
  bool gradient = false;
  float scale = 1;
  double* partials = nullptr;
  float* loss = nullptr;       ///< scale · Σ l, unless null
  double* loss_sum = nullptr;  ///< Σ l, unless null
};

/// Queued. The sum is accumulated in float64, in an order that depends on `numel` and the alignment of y and target
/// alone.
template <class Loss>
[[nodiscard]] cudaError_t loss_and_gradient(const Loss& loss, const LossArguments& arguments, cudaStream_t stream);

extern template cudaError_t loss_and_gradient(const MseLoss&, const LossArguments&, cudaStream_t);

}  // namespace ddp::kernels
