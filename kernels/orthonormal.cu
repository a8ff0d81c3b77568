#include "kernels/orthonormal.hpp"

#include <cmath>

#include "kernels/launch.hpp"
#include "kernels/sum.hpp"

namespace ddp::kernels {

/// Σ a[i] · b[i], in every thread; the columns of a row-major matrix are `stride` apart.
__device__ double dot_of_block(std::int64_t rows, std::int64_t stride, const float* a, const float* b) {
  constexpr int warps = sum_threads / 32;
  __shared__ double sums[warps];
  double sum = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += sum_threads) {
    sum += static_cast<double>(a[row * stride]) * static_cast<double>(b[row * stride]);
  }
  sum = sum_of_warp(sum);
  __syncthreads();  // the sums of the call before are read
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int warp = 0; warp < warps; ++warp) sum += sums[warp];
  return sum;
}

__global__ void __launch_bounds__(sum_threads)
    orthonormalize_kernel(std::int64_t rows, std::int64_t columns, float* values) {
  for (std::int64_t column = 0; column < columns; ++column) {
    float* own = values + column;
    const double before = dot_of_block(rows, columns, own, own);
    for (int times = 0; times < 2; ++times) {
      for (const float* other = values; other != own; ++other) {
        const double part = dot_of_block(rows, columns, own, other);
        for (std::int64_t row = threadIdx.x; row < rows; row += sum_threads) {
          own[row * columns] = static_cast<float>(own[row * columns] - part * other[row * columns]);
        }
      }
    }
    const double square = dot_of_block(rows, columns, own, own);
    const double factor = square > 1e-12 * before ? 1 / std::sqrt(square) : 0;
    for (std::int64_t row = threadIdx.x; row < rows; row += sum_threads) {
      own[row * columns] = static_cast<float>(own[row * columns] * factor);
    }
  }
}

cudaError_t orthonormalize(std::int64_t rows, std::int64_t columns, float* values, cudaStream_t stream) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  return launch<orthonormalize_kernel>(1, sum_threads, 0, stream, rows, columns, values);
}

}  // namespace ddp::kernels
