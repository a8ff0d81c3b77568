#include "kernels/sgd_kernel.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/launch.hpp"
#include "kernels/pack.hpp"

namespace ddp::kernels {

constexpr int sgd_threads = 256;

template <bool momentum, int width>
__global__ void __launch_bounds__(sgd_threads)
    sgd_kernel(SgdStep<float> step, std::int64_t numel, float* parameters, const float* gradients, float* buffer) {
  const std::int64_t threads = std::int64_t{gridDim.x} * sgd_threads;
  const std::int64_t thread = std::int64_t{blockIdx.x} * sgd_threads + threadIdx.x;
  const std::int64_t packs = numel / width;
  const auto element = [&step](float& parameter, float gradient, float& velocity) {
    parameter =
        momentum ? step.with_momentum(parameter, gradient, velocity) : step.without_momentum(parameter, gradient);
  };

  auto* parameter_packs = reinterpret_cast<Pack<width>*>(parameters);
  const auto* gradient_packs = reinterpret_cast<const Pack<width>*>(gradients);
  auto* buffer_packs = reinterpret_cast<Pack<width>*>(buffer);
  for (std::int64_t at = thread; at < packs; at += threads) {
    Pack<width> parameter = parameter_packs[at];
    const Pack<width> gradient = gradient_packs[at];
    Pack<width> velocity{};
    if (momentum) velocity = buffer_packs[at];
    for (int i = 0; i < width; ++i) element(parameter.value[i], gradient.value[i], velocity.value[i]);
    parameter_packs[at] = parameter;
    if (momentum) buffer_packs[at] = velocity;
  }
  for (std::int64_t at = packs * width + thread; at < numel; at += threads) {
    float velocity = momentum ? buffer[at] : 0;
    element(parameters[at], gradients[at], velocity);
    if (momentum) buffer[at] = velocity;
  }
}

cudaError_t sgd_update(const SgdStep<float>& step, std::int64_t numel, float* parameters, const float* gradients,
                       float* momentum_buffer, cudaStream_t stream) {
  constexpr int width = 4;
  constexpr std::int64_t max_blocks =
      8192;  // beyond this each thread has several packs, and the launch is no longer the cost
  if (numel == 0) return cudaSuccess;
  const bool momentum = momentum_buffer != nullptr;
  const bool packed = are_packs<width>({parameters, gradients, momentum_buffer});
  const std::int64_t elements_a_block = sgd_threads * (packed ? width : 1);
  const auto blocks = static_cast<unsigned>(std::min((numel + elements_a_block - 1) / elements_a_block, max_blocks));
  const auto queue = [&](auto with_momentum, auto pack) {
    return launch<sgd_kernel<decltype(with_momentum)::value, decltype(pack)::value>>(
        blocks, sgd_threads, 0, stream, step, numel, parameters, gradients, momentum_buffer);
  };
  using Wide = std::integral_constant<int, width>;
  using Narrow = std::integral_constant<int, 1>;
  if (momentum) return packed ? queue(std::true_type{}, Wide{}) : queue(std::true_type{}, Narrow{});
  return packed ? queue(std::false_type{}, Wide{}) : queue(std::false_type{}, Narrow{});
}

}  // namespace ddp::kernels
