#pragma once

#include <linear_ddp/device/operations.hpp>

namespace ddp::passes {

/// Losses and their gradients in one sweep over the outputs y of `rows` rows, from row `first` of the operation on:
/// each y becomes loss_scale · row_weight · dl/dy. Returns Σ row_weight · l, in float64.
double loss(const LinearLoss& operation, std::int64_t first, std::int64_t rows, float* y);

}  // namespace ddp::passes
