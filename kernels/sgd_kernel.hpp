#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/sgd.hpp"

namespace ddp::kernels {

/// Queued. One step for `numel` parameters; without momentum when `momentum_buffer` is null.
[[nodiscard]] cudaError_t sgd_update(const SgdStep<float>& step, std::int64_t numel, float* parameters,
                                     const float* gradients, float* momentum_buffer, cudaStream_t stream);

}  // namespace ddp::kernels
