#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ddp::kernels {

/// Queued. *sum += factor · *value.
[[nodiscard]] cudaError_t accumulate(const float* value, double factor, double* sum, cudaStream_t stream);

/// Queued. result[numel] = values[numel].
[[nodiscard]] cudaError_t widen(const float* values, std::int64_t numel, double* result, cudaStream_t stream);

}  // namespace ddp::kernels
