#pragma once

#include <cuda_runtime_api.h>

namespace ddp::kernels {

/// Queued. *sum += factor · *value.
[[nodiscard]] cudaError_t accumulate(const float* value, double factor, double* sum, cudaStream_t stream);

}  // namespace ddp::kernels
