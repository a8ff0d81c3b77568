#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ddp::kernels {

/// So many doubles of `partials` are enough for any matrix.
inline constexpr int max_column_partials = 512 * 32;

/// Queued. sums[columns] = the sums over the rows of values[rows, columns], or += with `add`; accumulated in float64 in
/// an order that depends on the shape alone.
[[nodiscard]] cudaError_t sum_columns(std::int64_t rows, std::int64_t columns, const float* values, bool add,
                                      float* sums, double* partials, cudaStream_t stream);

/// Queued. Every row of values[rows, columns] becomes row[columns].
[[nodiscard]] cudaError_t fill_rows(std::int64_t rows, std::int64_t columns, const float* row, float* values,
                                    cudaStream_t stream);

}  // namespace ddp::kernels
