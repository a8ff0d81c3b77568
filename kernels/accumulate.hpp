#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ddp::kernels {

/// Queued. sums[numel] += factor · values[numel], of up to 1024.
[[nodiscard]] cudaError_t accumulate(const float* values, std::int64_t numel, double factor, double* sums,
                                     cudaStream_t stream);

/// Queued. result[numel] = values[numel].
[[nodiscard]] cudaError_t widen(const float* values, std::int64_t numel, double* result, cudaStream_t stream);

/// Queued. sums[i] += factor · values[i], or = with `overwrite`.
[[nodiscard]] cudaError_t add(const float* values, std::int64_t numel, float factor, float* sums, bool overwrite,
                              cudaStream_t stream);

}  // namespace ddp::kernels
