#include "kernels/loss_kernel.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/launch.hpp"
#include "kernels/pack.hpp"
#include "kernels/sum.hpp"

namespace ddp::kernels {

__device__ inline void store_loss(double sum, const LossArguments& arguments) {
  const unsigned head = blockIdx.y;
  if (arguments.loss != nullptr) {
    float& loss = arguments.loss[head];
    loss = (arguments.add ? loss : 0.0F) + static_cast<float>(arguments.scale * sum);
  }
  if (arguments.loss_sum != nullptr) {
    double& loss_sum = arguments.loss_sum[head];
    loss_sum = (arguments.add ? loss_sum : 0.0) + sum;
  }
}

/// A block's part of its head's sum; that of the only block is the sum.
__device__ inline void store_part(double sum, const LossArguments& arguments) {
  sum = sum_of_block(sum);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1)
    store_loss(sum, arguments);
  else
    arguments.partials[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

/// Packs are for one head, whose outputs are as dense as the targets.
template <class Loss, int width>
__global__ void __launch_bounds__(sum_threads) loss_kernel(Loss loss, LossArguments arguments) {
  const std::int64_t threads = std::int64_t{gridDim.x} * sum_threads;
  const std::int64_t thread = std::int64_t{blockIdx.x} * sum_threads + threadIdx.x;
  const std::int64_t numel = arguments.rows * arguments.out;
  const std::int64_t packs = arguments.heads == 1 ? numel / width : 0;
  double sum = 0;
  const auto element = [&](std::int64_t at, float& output, float target) {
    const float weight = arguments.row_weight == nullptr ? 1.0F : arguments.row_weight[at / arguments.out];
    sum += static_cast<double>(weight * loss.value(output, target));
    output = arguments.scale * weight * loss.gradient(output, target);
  };

  auto* y_packs = reinterpret_cast<Pack<width>*>(arguments.y);
  const auto* target_packs = reinterpret_cast<const Pack<width>*>(arguments.target);
  for (std::int64_t at = thread; at < packs; at += threads) {
    Pack<width> output = y_packs[at];
    const Pack<width> target = target_packs[at];
    for (int i = 0; i < width; ++i) element(at * width + i, output.value[i], target.value[i]);
    if (arguments.gradient) y_packs[at] = output;
  }
  const std::int64_t others = (arguments.heads - 1) * arguments.out;
  for (std::int64_t at = packs * width + thread; at < numel; at += threads) {
    float* y = arguments.y + at + (others == 0 ? 0 : at / arguments.out * others + blockIdx.y * arguments.out);
    float output = *y;
    element(at, output, arguments.target[at]);
    if (arguments.gradient) *y = output;
  }
  store_part(sum, arguments);
}

/// The sum, or the largest, of a warp's values, in every lane.
__device__ inline float sum_in_warp(float value) {
  for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(~0U, value, mask);
  return value;
}
__device__ inline float largest_in_warp(float value) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const float other = __shfl_xor_sync(~0U, value, mask);
    value = other > value ? other : value;
  }
  return value;
}

/// One row by one warp; the row's loss in every lane. NaN for a target that is no class.
__device__ inline double cross_entropy_row(const CrossEntropy& loss, float* z, float target, float scale,
                                           bool gradient) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (!loss.is_class(target)) return NAN;
  const auto own = static_cast<std::int64_t>(target);
  const float own_logit = z[own], hard = loss.hard(own);

  float largest = -INFINITY;
  for (std::int64_t k = lane; k < loss.classes; k += 32) largest = z[k] > largest ? z[k] : largest;
  largest = largest_in_warp(largest);
  float exponentials = 0, soft = 0, soft_logits = 0;
  for (std::int64_t k = lane; k < loss.classes; k += 32) {
    exponentials += exp_of_nonpositive(z[k] - largest);
    soft += loss.soft(k);
    soft_logits += loss.soft(k) * (z[k] - largest);
  }
  exponentials = sum_in_warp(exponentials);
  soft = sum_in_warp(soft);
  soft_logits = sum_in_warp(soft_logits);

  const float factor = scale * (hard + soft) / exponentials;
  for (std::int64_t k = lane; gradient && k < loss.classes; k += 32) {
    z[k] = factor * exp_of_nonpositive(z[k] - largest) - scale * (loss.soft(k) + (k == own ? hard : 0.0F));
  }
  const double log_sum = std::log(static_cast<double>(exponentials));
  return static_cast<double>(hard) * (log_sum - static_cast<double>(own_logit - largest)) +
         static_cast<double>(soft) * log_sum - static_cast<double>(soft_logits);
}

__global__ void __launch_bounds__(sum_threads) cross_entropy_kernel(CrossEntropy loss, LossArguments arguments) {
  constexpr int warps = sum_threads / 32;
  double sum = 0;
  for (std::int64_t row = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32; row < arguments.rows;
       row += std::int64_t{gridDim.x} * warps) {
    const float weight = arguments.row_weight == nullptr ? 1.0F : arguments.row_weight[row];
    float* z = arguments.y + (row * arguments.heads + blockIdx.y) * arguments.out;
    const double value =
        cross_entropy_row(loss, z, arguments.target[row], arguments.scale * weight, arguments.gradient);
    if (threadIdx.x % 32 == 0) sum += static_cast<double>(weight) * value;
  }
  store_part(sum, arguments);
}

__global__ void __launch_bounds__(sum_threads) sum_losses_kernel(LossArguments arguments, int partials) {
  const double sum = sum_of_partials(arguments.partials + std::int64_t{blockIdx.y} * partials, partials);
  if (threadIdx.x == 0) store_loss(sum, arguments);
}

/// For each head as many blocks as its work is enough for.
dim3 grid_for(std::int64_t work, std::int64_t work_of_a_block, std::int64_t heads) {
  const std::int64_t most = std::max<std::int64_t>(1, max_loss_partials / heads);
  const std::int64_t blocks = std::min((work + work_of_a_block - 1) / work_of_a_block, most);
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(heads)};
}

cudaError_t finish(cudaError_t status, const LossArguments& arguments, const dim3& grid, cudaStream_t stream) {
  const bool wanted = arguments.loss != nullptr || arguments.loss_sum != nullptr;
  if (status != cudaSuccess || grid.x == 1 || !wanted) return status;
  return launch<sum_losses_kernel>(dim3(1, grid.y), sum_threads, 0, stream, arguments, static_cast<int>(grid.x));
}

template <class Loss>
cudaError_t loss_and_gradient(const Loss& loss, const LossArguments& arguments, cudaStream_t stream) {
  constexpr int width = 4;
  const std::int64_t numel = arguments.rows * arguments.out;
  if (numel == 0) return cudaSuccess;
  const bool packed = arguments.heads == 1 && are_packs<width>({arguments.y, arguments.target});
  const dim3 grid = grid_for(numel, sum_threads * (packed ? width : 1), arguments.heads);
  const cudaError_t status = packed ? launch<loss_kernel<Loss, width>>(grid, sum_threads, 0, stream, loss, arguments)
                                    : launch<loss_kernel<Loss, 1>>(grid, sum_threads, 0, stream, loss, arguments);
  return finish(status, arguments, grid, stream);
}

cudaError_t loss_and_gradient(const CrossEntropy& loss, const LossArguments& arguments, cudaStream_t stream) {
  if (arguments.rows == 0) return cudaSuccess;
  const dim3 grid = grid_for(arguments.rows, sum_threads / 32, arguments.heads);
  const cudaError_t status = launch<cross_entropy_kernel>(grid, sum_threads, 0, stream, loss, arguments);
  return finish(status, arguments, grid, stream);
}

template cudaError_t loss_and_gradient(const MseLoss&, const LossArguments&, cudaStream_t);
template cudaError_t loss_and_gradient(const HuberLoss&, const LossArguments&, cudaStream_t);
template cudaError_t loss_and_gradient(const BceWithLogitsLoss&, const LossArguments&, cudaStream_t);

}  // namespace ddp::kernels
