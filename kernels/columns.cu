#include "kernels/columns.hpp"

#include <algorithm>

#include "kernels/launch.hpp"

namespace ddp::kernels {

constexpr int tile_columns = 32;  // neighbouring threads read neighbouring addresses
constexpr int tile_rows = 8;

/// Block (x, y) sums every gridDim.y-th tile of rows of its 32 columns into row y of sums[gridDim.y, columns].
template <class In, class Out>
__global__ void __launch_bounds__(tile_columns* tile_rows)
    sum_columns_kernel(std::int64_t rows, std::int64_t columns, const In* values, bool add, Out* sums) {
  __shared__ double parts[tile_rows][tile_columns];
  const std::int64_t column = std::int64_t{blockIdx.x} * tile_columns + threadIdx.x;
  const std::int64_t first = std::int64_t{blockIdx.y} * tile_rows + threadIdx.y;
  double sum = 0;
  for (std::int64_t row = first; column < columns && row < rows; row += std::int64_t{gridDim.y} * tile_rows) {
    sum += static_cast<double>(values[row * columns + column]);
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int part = 1; part < tile_rows; ++part) sum += parts[part][threadIdx.x];
  Out& result = sums[blockIdx.y * columns + column];
  result = (add ? result : Out{0}) + static_cast<Out>(sum);
}

cudaError_t sum_columns(std::int64_t rows, std::int64_t columns, const float* values, bool add, float* sums,
                        double* partials, cudaStream_t stream) {
  if (columns == 0) return cudaSuccess;
  const std::int64_t tiles = (columns + tile_columns - 1) / tile_columns;
  const std::int64_t most = max_column_partials / tile_columns / tiles;
  // Fewer than 32 rows a thread are not worth a second kernel.
  const std::int64_t splits = std::max<std::int64_t>(std::min(rows / (32 * tile_rows), most), 1);
  const dim3 block(tile_columns, tile_rows);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(splits));
  if (splits == 1) {
    return launch<sum_columns_kernel<float, float>>(grid, block, 0, stream, rows, columns, values, add, sums);
  }
  const cudaError_t status =
      launch<sum_columns_kernel<float, double>>(grid, block, 0, stream, rows, columns, values, false, partials);
  if (status != cudaSuccess) return status;
  return launch<sum_columns_kernel<double, float>>(grid.x, block, 0, stream, splits, columns, partials, add, sums);
}

constexpr int fill_threads = 256;

__global__ void __launch_bounds__(fill_threads)
    fill_rows_kernel(std::int64_t numel, std::int64_t columns, const float* row, float* values) {
  const std::int64_t threads = std::int64_t{gridDim.x} * fill_threads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * fill_threads + threadIdx.x; at < numel; at += threads) {
    values[at] = row[at % columns];
  }
}

cudaError_t fill_rows(std::int64_t rows, std::int64_t columns, const float* row, float* values, cudaStream_t stream) {
  const std::int64_t numel = rows * columns;
  if (numel == 0) return cudaSuccess;
  const auto blocks = std::min<std::int64_t>((numel + fill_threads - 1) / fill_threads, 8192);
  return launch<fill_rows_kernel>(static_cast<unsigned>(blocks), fill_threads, 0, stream, numel, columns, row, values);
}

}  // namespace ddp::kernels
