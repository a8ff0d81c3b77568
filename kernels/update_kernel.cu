#include "kernels/update_kernel.hpp"

#include <algorithm>

#include "kernels/gradient.hpp"
#include "kernels/launch.hpp"
#include "kernels/pack.hpp"
#include "kernels/sum.hpp"

namespace ddp::kernels {

constexpr int update_width = 4;

__device__ inline float penalized_at(const GradientArguments& arguments, std::int64_t at, float gradient,
                                     float parameter) {
  return penalized(gradient, parameter, at < arguments.penalized ? arguments.l2 : 0.0F);
}

__device__ inline float clip_of(const GradientArguments& arguments) {
  return arguments.square_sum == nullptr ? 1.0F : clip_factor(*arguments.square_sum, arguments.max_norm);
}

/// Each thread's elements, in packs where all arrays allow it, and what is left one by one: element(at, parameter,
/// gradient, states), with the values of the optimizer's `states` arrays there.
template <int width, int states, class Element>
__device__ inline void sweep(const GradientArguments& arguments, float* const (&state)[states],
                             const Element& element) {
  const std::int64_t threads = std::int64_t{gridDim.x} * sum_threads;
  const std::int64_t thread = std::int64_t{blockIdx.x} * sum_threads + threadIdx.x;
  const std::int64_t packs = arguments.numel / width;
  const float clip = clip_of(arguments);
  for (std::int64_t at = thread; at < packs; at += threads) {
    auto parameter = reinterpret_cast<Pack<width>*>(arguments.parameters)[at];
    const auto gradient = reinterpret_cast<const Pack<width>*>(arguments.gradients)[at];
    Pack<width> value[states]{};
    for (int s = 0; s < states; ++s) {
      if (state[s] != nullptr) value[s] = reinterpret_cast<const Pack<width>*>(state[s])[at];
    }
    for (int i = 0; i < width; ++i) {
      float at_i[states];
      for (int s = 0; s < states; ++s) at_i[s] = value[s].value[i];
      float& p = parameter.value[i];
      p = element(p, clip * penalized_at(arguments, at * width + i, gradient.value[i], p), at_i);
      for (int s = 0; s < states; ++s) value[s].value[i] = at_i[s];
    }
    reinterpret_cast<Pack<width>*>(arguments.parameters)[at] = parameter;
    for (int s = 0; s < states; ++s) {
      if (state[s] != nullptr) reinterpret_cast<Pack<width>*>(state[s])[at] = value[s];
    }
  }
  for (std::int64_t at = packs * width + thread; at < arguments.numel; at += threads) {
    float value[states];
    for (int s = 0; s < states; ++s) value[s] = state[s] == nullptr ? 0.0F : state[s][at];
    float& p = arguments.parameters[at];
    p = element(p, clip * penalized_at(arguments, at, arguments.gradients[at], p), value);
    for (int s = 0; s < states; ++s) {
      if (state[s] != nullptr) state[s][at] = value[s];
    }
  }
}

template <bool momentum, int width>
__global__ void __launch_bounds__(sum_threads)
    sgd_kernel(GradientArguments arguments, SgdStep<float> step, const float* lr, float* buffer) {
  step.lr = *lr;
  float* const state[] = {buffer};
  sweep<width>(arguments, state, [&step](float parameter, float gradient, float* values) {
    return momentum ? step.with_momentum(parameter, gradient, values[0]) : step.without_momentum(parameter, gradient);
  });
}

template <bool amsgrad, int width>
__global__ void __launch_bounds__(sum_threads)
    adam_kernel(GradientArguments arguments, AdamStep step, const float* scalars, float* mean, float* square,
                float* greatest) {
  const AdamScalars now{scalars[0], scalars[1], scalars[2]};
  float* const state[] = {mean, square, greatest};
  sweep<width>(arguments, state, [&](float parameter, float gradient, float* values) {
    return step.next<amsgrad>(now, parameter, gradient, values[0], values[1], values[2]);
  });
}

__global__ void __launch_bounds__(sum_threads) square_sum_kernel(GradientArguments arguments, double* sums) {
  const std::int64_t threads = std::int64_t{gridDim.x} * sum_threads;
  double sum = 0;
  for (std::int64_t at = std::int64_t{blockIdx.x} * sum_threads + threadIdx.x; at < arguments.numel; at += threads) {
    const auto g = static_cast<double>(penalized_at(arguments, at, arguments.gradients[at], arguments.parameters[at]));
    sum += g * g;
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(sum_threads)
    sum_squares_kernel(const double* partials, int numel, double* result, bool add) {
  const double sum = sum_of_partials(partials, numel);
  if (threadIdx.x == 0) *result = (add ? *result : 0.0) + sum;
}

unsigned blocks_of(std::int64_t numel, int width, std::int64_t most) {
  const std::int64_t elements_a_block = std::int64_t{sum_threads} * width;
  return static_cast<unsigned>(std::min((numel + elements_a_block - 1) / elements_a_block, most));
}

// Beyond these each thread has several packs, and the launch is no longer the cost.
constexpr std::int64_t most_update_blocks = 8192;

cudaError_t square_sum(const GradientArguments& gradient, double* partials, double* sum, bool add,
                       cudaStream_t stream) {
  const unsigned blocks = std::max(blocks_of(gradient.numel, update_width, max_square_partials), 1U);
  const bool in_one = blocks == 1 && !add;
  const cudaError_t status =
      launch<square_sum_kernel>(blocks, sum_threads, 0, stream, gradient, in_one ? sum : partials);
  if (status != cudaSuccess || in_one) return status;
  return launch<sum_squares_kernel>(1, sum_threads, 0, stream, partials, static_cast<int>(blocks), sum, add);
}

/// queue(flag, width) with both as types, for so many blocks.
template <class Queue>
cudaError_t choose(bool flag, bool packed, std::int64_t numel, const Queue& queue) {
  using Wide = std::integral_constant<int, update_width>;
  using Narrow = std::integral_constant<int, 1>;
  if (numel == 0) return cudaSuccess;
  const unsigned blocks = blocks_of(numel, packed ? update_width : 1, most_update_blocks);
  if (flag) return packed ? queue(std::true_type{}, Wide{}, blocks) : queue(std::true_type{}, Narrow{}, blocks);
  return packed ? queue(std::false_type{}, Wide{}, blocks) : queue(std::false_type{}, Narrow{}, blocks);
}

cudaError_t sgd_update(const GradientArguments& gradient, const SgdStep<float>& step, const float* lr,
                       float* momentum_buffer, cudaStream_t stream) {
  const bool packed = are_packs<update_width>({gradient.parameters, gradient.gradients, momentum_buffer});
  return choose(momentum_buffer != nullptr, packed, gradient.numel, [&](auto momentum, auto width, unsigned blocks) {
    return launch<sgd_kernel<decltype(momentum)::value, decltype(width)::value>>(blocks, sum_threads, 0, stream,
                                                                                 gradient, step, lr, momentum_buffer);
  });
}

cudaError_t adam_update(const GradientArguments& gradient, const AdamStep& step, const float* scalars, float* mean,
                        float* square, float* greatest, cudaStream_t stream) {
  const bool packed = are_packs<update_width>({gradient.parameters, gradient.gradients, mean, square, greatest});
  return choose(greatest != nullptr, packed, gradient.numel, [&](auto amsgrad, auto width, unsigned blocks) {
    return launch<adam_kernel<decltype(amsgrad)::value, decltype(width)::value>>(
        blocks, sum_threads, 0, stream, gradient, step, scalars, mean, square, greatest);
  });
}

}  // namespace ddp::kernels
