#include "kernels/accumulate.hpp"

#include <algorithm>

#include "kernels/launch.hpp"

namespace ddp::kernels {

__global__ void __launch_bounds__(1) accumulate_kernel(const float* value, double factor, double* sum) {
  *sum += factor * static_cast<double>(*value);
}

cudaError_t accumulate(const float* value, double factor, double* sum, cudaStream_t stream) {
  return launch<accumulate_kernel>(1, 1, 0, stream, value, factor, sum);
}

constexpr int widen_threads = 256;

__global__ void __launch_bounds__(widen_threads) widen_kernel(const float* values, std::int64_t numel, double* result) {
  const std::int64_t threads = std::int64_t{gridDim.x} * widen_threads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * widen_threads + threadIdx.x; at < numel; at += threads) {
    result[at] = static_cast<double>(values[at]);
  }
}

cudaError_t widen(const float* values, std::int64_t numel, double* result, cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  constexpr std::int64_t most_blocks = 4096;  // some for each multiprocessor
  const auto blocks = std::min((numel + widen_threads - 1) / widen_threads, most_blocks);
  return launch<widen_kernel>(static_cast<unsigned>(blocks), widen_threads, 0, stream, values, numel, result);
}

}  // namespace ddp::kernels
