#include "kernels/loss_kernel.hpp"

#include <algorithm>

#include "kernels/launch.hpp"
#include "kernels/pack.hpp"

namespace ddp::kernels {

constexpr int loss_threads = 256;
constexpr int loss_warps = loss_threads / 32;

/// The sum over the block's threads, in a fixed order; right in thread 0 only.
__device__ inline double sum_of_block(double value) {
  __shared__ double warps[loss_warps];
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(~0U, value, distance);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 1; threadIdx.x == 0 && warp < loss_warps; ++warp) value += warps[warp];
  return value;
}

__device__ inline void store_loss(double sum, const LossArguments& arguments) {
  if (arguments.loss != nullptr) *arguments.loss = static_cast<float>(arguments.scale * sum);
  if (arguments.loss_sum != nullptr) *arguments.loss_sum = sum;
}

template <class Loss, int width>
__global__ void __launch_bounds__(loss_threads) loss_kernel(Loss loss, LossArguments arguments) {
  const std::int64_t threads = std::int64_t{gridDim.x} * loss_threads;
  const std::int64_t thread = std::int64_t{blockIdx.x} * loss_threads + threadIdx.x;
  const std::int64_t packs = arguments.numel / width;
  double sum = 0;
  const auto element = [&](float& output, float target) {
    sum += static_cast<double>(loss.value(output, target));
    output = arguments.scale * loss.gradient(output, target);
  };

  auto* y_packs = reinterpret_cast<Pack<width>*>(arguments.y);
  const auto* target_packs = reinterpret_cast<const Pack<width>*>(arguments.target);
  for (std::int64_t at = thread; at < packs; at += threads) {
    Pack<width> output = y_packs[at];
    const Pack<width> target = target_packs[at];
    for (int i = 0; i < width; ++i) element(output.value[i], target.value[i]);
    if (arguments.gradient) y_packs[at] = output;
  }
  for (std::int64_t at = packs * width + thread; at < arguments.numel; at += threads) {
    float output = arguments.y[at];
    element(output, arguments.target[at]);
    if (arguments.gradient) arguments.y[at] = output;
  }

  sum = sum_of_block(sum);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1)
    store_loss(sum, arguments);
  else
    arguments.partials[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(loss_threads) sum_partials_kernel(LossArguments arguments, int partials) {
  double sum = 0;
  for (int at = static_cast<int>(threadIdx.x); at < partials; at += loss_threads) sum += arguments.partials[at];
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) store_loss(sum, arguments);
}

template <class Loss>
cudaError_t loss_and_gradient(const Loss& loss, const LossArguments& arguments, cudaStream_t stream) {
  constexpr int width = 4;
  if (arguments.numel == 0) return cudaSuccess;
  const bool packed = are_packs<width>({arguments.y, arguments.target});
  const std::int64_t elements_a_block = loss_threads * (packed ? width : 1);
  const auto blocks = static_cast<unsigned>(
      std::min<std::int64_t>((arguments.numel + elements_a_block - 1) / elements_a_block, max_loss_partials));
  const cudaError_t status = packed ? launch<loss_kernel<Loss, width>>(blocks, loss_threads, 0, stream, loss, arguments)
                                    : launch<loss_kernel<Loss, 1>>(blocks, loss_threads, 0, stream, loss, arguments);
  const bool wanted = arguments.loss != nullptr || arguments.loss_sum != nullptr;
  if (status != cudaSuccess || blocks == 1 || !wanted) return status;
  return launch<sum_partials_kernel>(1, loss_threads, 0, stream, arguments, static_cast<int>(blocks));
}

template cudaError_t loss_and_gradient(const MseLoss&, const LossArguments&, cudaStream_t);

}  // namespace ddp::kernels
