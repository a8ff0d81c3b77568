#include "linear_ddp/device/cpu_passes.hpp"

#include "kernels/loss.hpp"
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

// Flat, not row by row: an end of a vector in each row of ten outputs would cost more than the arithmetic.
DDP_MULTIVERSION double mse(std::int64_t numel, const float* target, float scale, float* y) {
  const kernels::MseLoss loss;
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < numel; ++i) {
    sum += static_cast<double>(loss.value(y[i], target[i]));
    y[i] = scale * loss.gradient(y[i], target[i]);
  }
  return sum;
}

DDP_MULTIVERSION void sgd(std::int64_t numel, const kernels::SgdStep<float>& step, const float* gradients,
                          float* parameters) {
  const auto local = step;  // by value: what it points to may not change in the loop
#pragma omp simd
  for (std::int64_t i = 0; i < numel; ++i) parameters[i] = local.without_momentum(parameters[i], gradients[i]);
}

DDP_MULTIVERSION void sgd(std::int64_t numel, const kernels::SgdStep<float>& step, const float* gradients,
                          float* momentum_buffer, float* parameters) {
  const auto local = step;
#pragma omp simd
  for (std::int64_t i = 0; i < numel; ++i) {
    parameters[i] = local.with_momentum(parameters[i], gradients[i], momentum_buffer[i]);
  }
}

}  // namespace ddp::passes
