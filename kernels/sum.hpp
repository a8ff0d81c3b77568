#pragma once

// Sums in kernels, in an order that depends on the number of addends alone.

namespace ddp::kernels {

constexpr int sum_threads = 256;  ///< of a block that sums

/// The sum over a warp's threads; right in lane 0 only.
__device__ inline double sum_of_warp(double value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(~0U, value, distance);
  return value;
}

/// The sum over the block's threads; right in thread 0 only. Once in a kernel.
__device__ inline double sum_of_block(double value) {
  constexpr int warps = sum_threads / 32;
  __shared__ double sums[warps];
  value = sum_of_warp(value);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 1; threadIdx.x == 0 && warp < warps; ++warp) value += sums[warp];
  return value;
}

/// The sum of what `partials` blocks left; right in thread 0 only. Once in a kernel.
__device__ inline double sum_of_partials(const double* partials, int numel) {
  double sum = 0;
  for (int at = static_cast<int>(threadIdx.x); at < numel; at += sum_threads) sum += partials[at];
  return sum_of_block(sum);
}

}  // namespace ddp::kernels
