#include "linear_ddp/device/cpu_update.hpp"

#include <algorithm>

#include "kernels/adam.hpp"
#include "kernels/gradient.hpp"
#include "kernels/multiversion.hpp"

namespace ddp::passes {
namespace {

/// A range whose parameters are all penalised alike, so that no loop has to ask.
struct Range {
  std::int64_t begin, end;
  float l2;
};

template <class Sweep>
void for_ranges(const Gradient& gradient, const Sweep& sweep) {
  const std::int64_t middle = gradient.l2 == 0 ? 0 : std::min(gradient.penalized, gradient.numel);
  if (middle > 0) sweep(Range{0, middle, gradient.l2});
  if (middle < gradient.numel) sweep(Range{middle, gradient.numel, 0.0F});
}

float clip_of(const Gradient& gradient) {
  return gradient.square_sum == nullptr ? 1.0F : kernels::clip_factor(*gradient.square_sum, gradient.max_norm);
}

DDP_MULTIVERSION double squares(const float* gradients, const float* parameters, Range range) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const auto g = static_cast<double>(kernels::penalized(gradients[i], parameters[i], range.l2));
    sum += g * g;
  }
  return sum;
}

// Steps are passed by value: what a reference points to might change in the loop.

DDP_MULTIVERSION void plain_sgd(const float* gradients, float* parameters, Range range, float clip,
                                kernels::SgdStep<float> step) {
#pragma omp simd
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const float g = clip * kernels::penalized(gradients[i], parameters[i], range.l2);
    parameters[i] = step.without_momentum(parameters[i], g);
  }
}

DDP_MULTIVERSION void momentum_sgd(const float* gradients, float* parameters, Range range, float clip,
                                   kernels::SgdStep<float> step, float* buffer) {
#pragma omp simd
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const float g = clip * kernels::penalized(gradients[i], parameters[i], range.l2);
    parameters[i] = step.with_momentum(parameters[i], g, buffer[i]);
  }
}

template <bool amsgrad>
[[gnu::always_inline]] inline void adam_sweep(const Gradient& gradient, Range range, float clip, kernels::AdamStep step,
                                              kernels::AdamScalars now, const AdamUpdate& state) {
  const float* gradients = gradient.gradients;
  float *parameters = gradient.parameters, *mean = state.mean, *square = state.square, *greatest = state.greatest;
#pragma omp simd
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const float g = clip * kernels::penalized(gradients[i], parameters[i], range.l2);
    float unused = 0;
    parameters[i] = step.next<amsgrad>(now, parameters[i], g, mean[i], square[i], amsgrad ? greatest[i] : unused);
  }
}

DDP_MULTIVERSION void plain_adam(const Gradient& gradient, Range range, float clip, kernels::AdamStep step,
                                 kernels::AdamScalars now, const AdamUpdate& state) {
  adam_sweep<false>(gradient, range, clip, step, now, state);
}
DDP_MULTIVERSION void amsgrad_adam(const Gradient& gradient, Range range, float clip, kernels::AdamStep step,
                                   kernels::AdamScalars now, const AdamUpdate& state) {
  adam_sweep<true>(gradient, range, clip, step, now, state);
}

}  // namespace

double square_sum(const Gradient& gradient) {
  double sum = 0;
  for_ranges(gradient, [&](Range range) { sum += squares(gradient.gradients, gradient.parameters, range); });
  return sum;
}

void sgd(const Gradient& gradient, const kernels::SgdStep<float>& step, float* momentum_buffer) {
  const float clip = clip_of(gradient);
  for_ranges(gradient, [&](Range range) {
    if (momentum_buffer == nullptr)
      plain_sgd(gradient.gradients, gradient.parameters, range, clip, step);
    else
      momentum_sgd(gradient.gradients, gradient.parameters, range, clip, step, momentum_buffer);
  });
}

void adam(const Gradient& gradient, const AdamUpdate& update, const float* scalars) {
  const auto step = kernels::AdamStep::from(update.beta1, update.beta2, update.eps, update.weight_decay);
  const kernels::AdamScalars now{scalars[0], scalars[1], scalars[2]};
  const float clip = clip_of(gradient);
  for_ranges(gradient, [&](Range range) {
    if (update.greatest == nullptr)
      plain_adam(gradient, range, clip, step, now, update);
    else
      amsgrad_adam(gradient, range, clip, step, now, update);
  });
}

}  // namespace ddp::passes
