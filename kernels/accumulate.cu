#include "kernels/accumulate.hpp"

#include <algorithm>

#include "kernels/launch.hpp"

namespace ddp::kernels {

constexpr int most_accumulated = 1024;

__global__ void __launch_bounds__(most_accumulated)
    accumulate_kernel(const float* values, double factor, double* sums) {
  sums[threadIdx.x] += factor * static_cast<double>(values[threadIdx.x]);
}

cudaError_t accumulate(const float* values, std::int64_t numel, double factor, double* sums, cudaStream_t stream) {
  if (numel > most_accumulated) return cudaErrorInvalidValue;
  return launch<accumulate_kernel>(1, static_cast<unsigned>(numel), 0, stream, values, factor, sums);
}

constexpr int widen_threads = 256;
constexpr std::int64_t most_blocks = 4096;  // some for each multiprocessor

__global__ void __launch_bounds__(widen_threads) widen_kernel(const float* values, std::int64_t numel, double* result) {
  const std::int64_t threads = std::int64_t{gridDim.x} * widen_threads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * widen_threads + threadIdx.x; at < numel; at += threads) {
    result[at] = static_cast<double>(values[at]);
  }
}

cudaError_t widen(const float* values, std::int64_t numel, double* result, cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  const auto blocks = std::min((numel + widen_threads - 1) / widen_threads, most_blocks);
  return launch<widen_kernel>(static_cast<unsigned>(blocks), widen_threads, 0, stream, values, numel, result);
}

__global__ void __launch_bounds__(widen_threads)
    add_kernel(const float* values, std::int64_t numel, float factor, float* sums, bool overwrite) {
  const std::int64_t threads = std::int64_t{gridDim.x} * widen_threads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * widen_threads + threadIdx.x; at < numel; at += threads) {
    sums[at] = (overwrite ? 0.0F : sums[at]) + factor * values[at];
  }
}

cudaError_t add(const float* values, std::int64_t numel, float factor, float* sums, bool overwrite,
                cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  const auto blocks = std::min((numel + widen_threads - 1) / widen_threads, most_blocks);
  return launch<add_kernel>(static_cast<unsigned>(blocks), widen_threads, 0, stream, values, numel, factor, sums,
                            overwrite);
}

}  // namespace ddp::kernels
