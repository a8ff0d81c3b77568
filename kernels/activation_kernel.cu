#include "kernels/activation_kernel.hpp"

#include <algorithm>

#include "kernels/launch.hpp"
#include "kernels/pack.hpp"

namespace ddp::kernels {

constexpr int activation_threads = 256;

/// result[i] = f(from[i], result[i]), in packs and then the rest.
template <int width, class Element>
__device__ void sweep(std::int64_t numel, const float* from, float* result, const Element& element) {
  const std::int64_t threads = std::int64_t{gridDim.x} * activation_threads;
  const std::int64_t thread = std::int64_t{blockIdx.x} * activation_threads + threadIdx.x;
  const std::int64_t packs = numel / width;
  const auto* from_packs = reinterpret_cast<const Pack<width>*>(from);
  auto* result_packs = reinterpret_cast<Pack<width>*>(result);
  for (std::int64_t at = thread; at < packs; at += threads) {
    const Pack<width> values = from_packs[at];
    Pack<width> results = result_packs[at];
    for (int i = 0; i < width; ++i) element(values.value[i], results.value[i]);
    result_packs[at] = results;
  }
  for (std::int64_t at = packs * width + thread; at < numel; at += threads) element(from[at], result[at]);
}

template <class Function, int width>
__global__ void __launch_bounds__(activation_threads)
    activate_kernel(Function function, std::int64_t numel, const float* z, float* y) {
  sweep<width>(numel, z, y, [&](float value, float& result) { result = function.value(value); });
}

template <class Function, int width>
__global__ void __launch_bounds__(activation_threads)
    through_activation_kernel(Function function, std::int64_t numel, const float* kept, float* gradient) {
  sweep<width>(numel, kept, gradient, [&](float value, float& result) { result *= function.gradient(value); });
}

unsigned blocks_for(std::int64_t numel) {
  constexpr std::int64_t most_blocks = 4096;  // some for each multiprocessor
  return static_cast<unsigned>(std::min((numel + activation_threads - 1) / activation_threads, most_blocks));
}

template <class Function>
cudaError_t activate(const Function& function, std::int64_t numel, const float* z, float* y, cudaStream_t stream) {
  constexpr int width = 4;
  if (numel == 0) return cudaSuccess;
  if (are_packs<width>({z, y})) {
    return launch<activate_kernel<Function, width>>(blocks_for((numel + width - 1) / width), activation_threads, 0,
                                                    stream, function, numel, z, y);
  }
  return launch<activate_kernel<Function, 1>>(blocks_for(numel), activation_threads, 0, stream, function, numel, z, y);
}

template <class Function>
cudaError_t through_activation(const Function& function, std::int64_t numel, const float* kept, float* gradient,
                               cudaStream_t stream) {
  constexpr int width = 4;
  if (numel == 0) return cudaSuccess;
  if (are_packs<width>({kept, gradient})) {
    return launch<through_activation_kernel<Function, width>>(
        blocks_for((numel + width - 1) / width), activation_threads, 0, stream, function, numel, kept, gradient);
  }
  return launch<through_activation_kernel<Function, 1>>(blocks_for(numel), activation_threads, 0, stream, function,
                                                        numel, kept, gradient);
}

template cudaError_t activate(const Relu&, std::int64_t, const float*, float*, cudaStream_t);
template cudaError_t activate(const Tanh&, std::int64_t, const float*, float*, cudaStream_t);
template cudaError_t activate(const Gelu&, std::int64_t, const float*, float*, cudaStream_t);
template cudaError_t through_activation(const Relu&, std::int64_t, const float*, float*, cudaStream_t);
template cudaError_t through_activation(const Tanh&, std::int64_t, const float*, float*, cudaStream_t);
template cudaError_t through_activation(const Gelu&, std::int64_t, const float*, float*, cudaStream_t);

}  // namespace ddp::kernels
