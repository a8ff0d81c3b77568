#include "kernels/half_kernel.hpp"

#include <algorithm>

#include "kernels/launch.hpp"

namespace ddp::kernels {

constexpr int half_threads = 256;

template <class Half>
__global__ void __launch_bounds__(half_threads)
    to_half_kernel(const float* values, std::int64_t numel, std::uint16_t* result) {
  const std::int64_t threads = std::int64_t{gridDim.x} * half_threads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * half_threads + threadIdx.x; at < numel; at += threads) {
    result[at] = Half::from_float(values[at]);
  }
}

template <class Half>
__global__ void __launch_bounds__(half_threads)
    from_half_kernel(const std::uint16_t* values, std::int64_t numel, float* result) {
  const std::int64_t threads = std::int64_t{gridDim.x} * half_threads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * half_threads + threadIdx.x; at < numel; at += threads) {
    result[at] = Half::to_float(values[at]);
  }
}

unsigned half_blocks(std::int64_t numel) {
  constexpr std::int64_t most_blocks = 4096;  // some for each multiprocessor
  return static_cast<unsigned>(std::min((numel + half_threads - 1) / half_threads, most_blocks));
}

template <class Half>
cudaError_t to_half(const float* values, std::int64_t numel, std::uint16_t* result, cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  return launch<to_half_kernel<Half>>(half_blocks(numel), half_threads, 0, stream, values, numel, result);
}

template <class Half>
cudaError_t from_half(const std::uint16_t* values, std::int64_t numel, float* result, cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  return launch<from_half_kernel<Half>>(half_blocks(numel), half_threads, 0, stream, values, numel, result);
}

template cudaError_t to_half<Fp16>(const float*, std::int64_t, std::uint16_t*, cudaStream_t);
template cudaError_t to_half<Bf16>(const float*, std::int64_t, std::uint16_t*, cudaStream_t);
template cudaError_t from_half<Fp16>(const std::uint16_t*, std::int64_t, float*, cudaStream_t);
template cudaError_t from_half<Bf16>(const std::uint16_t*, std::int64_t, float*, cudaStream_t);

}  // namespace ddp::kernels
