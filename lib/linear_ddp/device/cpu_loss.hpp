#pragma once

#include <linear_ddp/device/operations.hpp>

namespace ddp::passes {

/// Losses and their gradients in one sweep over the outputs y of `rows` rows, from row `first` of the operation on:
/// each y[rows, heads, out] becomes loss_scale · row_weight · dl/dy. Adds Σ row_weight · l to sums[heads].
void loss(const LinearLoss& operation, std::int64_t first, std::int64_t rows, float* y, double* sums);

}  // namespace ddp::passes
