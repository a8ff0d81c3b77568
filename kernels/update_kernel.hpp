#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/adam.hpp"
#include "kernels/sgd.hpp"

// The optimizers' sweeps over a flat range of parameters. Queued.
namespace ddp::kernels {

/// So many doubles of `partials` are enough for any number of parameters.
inline constexpr int max_square_partials = 1024;

struct GradientArguments {
  std::int64_t numel = 0;
  float* parameters = nullptr;
  const float* gradients = nullptr;
  std::int64_t penalized = 0;  ///< parameters [0, penalized) have the penalty l2/2 · p²
  float l2 = 0;
  float max_norm = 0;
  const double* square_sum = nullptr;  ///< of the gradients with their penalties; null: they are not clipped
};

/// *sum = Σ (gradient + penalty's)², or += with `add`, in float64, in an order that depends on `numel` alone.
[[nodiscard]] cudaError_t square_sum(const GradientArguments& gradient, double* partials, double* sum, bool add,
                                     cudaStream_t stream);

/// Without momentum when `momentum_buffer` is null. Of `step`, lr is not looked at: it is *lr.
[[nodiscard]] cudaError_t sgd_update(const GradientArguments& gradient, const SgdStep<float>& step, const float* lr,
                                     float* momentum_buffer, cudaStream_t stream);

/// Without amsgrad when `greatest` is null. `scalars`: AdamScalars' three.
[[nodiscard]] cudaError_t adam_update(const GradientArguments& gradient, const AdamStep& step, const float* scalars,
                                      float* mean, float* square, float* greatest, cudaStream_t stream);

}  // namespace ddp::kernels
