#include "linear_ddp/device/cpu_passes.hpp"

#include "kernels/multiversion.hpp"

namespace ddp::passes {

DDP_MULTIVERSION void fill_rows(std::int64_t rows, std::int64_t out, const float* row, float* y) {
  for (std::int64_t i = 0; i < rows; ++i, y += out) {
    for (std::int64_t j = 0; j < out; ++j) y[j] = row[j];
  }
}

DDP_MULTIVERSION void add_columns(std::int64_t rows, std::int64_t out, const float* y, double* sums) {
  for (std::int64_t i = 0; i < rows; ++i, y += out) {
#pragma omp simd
    for (std::int64_t j = 0; j < out; ++j) sums[j] += static_cast<double>(y[j]);
  }
}

}  // namespace ddp::passes
