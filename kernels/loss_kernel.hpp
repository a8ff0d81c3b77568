#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cross_entropy.hpp"
#include "kernels/loss.hpp"

namespace ddp::kernels {

/// So many doubles of `partials` are enough for any number of elements, and for as many heads. Not a number of this
/// GPU's processors: the sum is the same to the bit on every GPU.
inline constexpr int max_loss_partials = 1024;

struct LossArguments {
  std::int64_t rows = 0, heads = 1, out = 0;
  float* y = nullptr;  ///< [rows, heads, out]; becomes scale · row_weight · dl/dy when `gradient`
  const float* target = nullptr;
  const float* row_weight = nullptr;  ///< [rows]; null: 1 each
  bool gradient = false;
  float scale = 1;
  bool add = false;  ///< to loss and loss_sum
  double* partials = nullptr;
  float* loss = nullptr;       ///< [heads], scale · Σ row_weight · l, unless null
  double* loss_sum = nullptr;  ///< [heads], Σ row_weight · l, unless null
};

/// Queued. The sum is accumulated in float64, in an order that depends on rows, out and the alignment of y and target
/// alone.
template <class Loss>
[[nodiscard]] cudaError_t loss_and_gradient(const Loss& loss, const LossArguments& arguments, cudaStream_t stream);

extern template cudaError_t loss_and_gradient(const MseLoss&, const LossArguments&, cudaStream_t);
extern template cudaError_t loss_and_gradient(const HuberLoss&, const LossArguments&, cudaStream_t);
extern template cudaError_t loss_and_gradient(const BceWithLogitsLoss&, const LossArguments&, cudaStream_t);
[[nodiscard]] cudaError_t loss_and_gradient(const CrossEntropy& loss, const LossArguments& arguments,
                                            cudaStream_t stream);

}  // namespace ddp::kernels
