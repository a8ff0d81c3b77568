#pragma once

#include <cstdint>

#include <linear_ddp/device/operations.hpp>

/// The CPU device's element-wise passes, each one sweep over memory in the machine's widest vectors.
namespace ddp::passes {

/// Every row of y[rows, out] becomes `row`.
void fill_rows(std::int64_t rows, std::int64_t out, const float* row, float* y);

/// sums[out] += the sums of the columns of y[rows, out]. In float64: a float stops growing after 2^24 equal addends.
void add_columns(std::int64_t rows, std::int64_t out, const float* y, double* sums);

/// y[i] = activation(z[i]); the two may be one.
void activate(Activation activation, std::int64_t numel, const float* z, float* y);

/// gradient[i] *= the activation's derivative, told from its input where keeps_input, else from its output.
void through_activation(Activation activation, std::int64_t numel, const float* kept, float* gradient);

/// sums[i] += factor · values[i]
void add(const float* values, std::int64_t numel, float factor, float* sums);
/// result[i] = factor · values[i]
void scale(const float* values, std::int64_t numel, float factor, float* result);

/// As Device's.
void orthonormalize(std::int64_t rows, std::int64_t columns, float* values);

void to_half(HalfType type, const float* values, std::int64_t numel, std::uint16_t* result);
void from_half(HalfType type, const std::uint16_t* values, std::int64_t numel, float* result);

}  // namespace ddp::passes
