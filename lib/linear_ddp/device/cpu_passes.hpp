#pragma once

#include <cstdint>

#include "kernels/sgd.hpp"

/// The CPU device's element-wise passes, each one sweep over memory in the machine's widest vectors.
namespace ddp::passes {

/// Every row of y[rows, out] becomes `row`.
void fill_rows(std::int64_t rows, std::int64_t out, const float* row, float* y);

/// sums[out] += the sums of the columns of y[rows, out]. In float64: a float stops growing after 2^24 equal addends.
void add_columns(std::int64_t rows, std::int64_t out, const float* y, double* sums);

/// Each y becomes scale · dl/dy; returns Σ l in float64.
double mse(std::int64_t numel, const float* target, float scale, float* y);

void sgd(std::int64_t numel, const kernels::SgdStep<float>& step, const float* gradients, float* parameters);
void sgd(std::int64_t numel, const kernels::SgdStep<float>& step, const float* gradients, float* momentum_buffer,
         float* parameters);

}  // namespace ddp::passes
