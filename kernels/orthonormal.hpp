#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ddp::kernels {

/// Queued. The columns of values[rows, columns] become orthogonal and of norm 1, from the first on, by Gram and
/// Schmidt, twice over, with sums in float64; what is left of a column that depends on those before it becomes 0. One
/// block: for few columns.
[[nodiscard]] cudaError_t orthonormalize(std::int64_t rows, std::int64_t columns, float* values, cudaStream_t stream);

}  // namespace ddp::kernels
