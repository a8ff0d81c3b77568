#pragma once

#include <cstdint>

namespace ddp {

/// The pass between the two products of a layer with MSE loss, over rows x out values, in one sweep:
/// y += bias (null: none), then y becomes scale · dl/dy, bias_gradient (null: none) += its column sums.
/// Returns Σ l in float64. With scale 0 and no bias_gradient it serves evaluations too.
double mse_pass(std::int64_t rows, std::int64_t out, const float* bias, const float* target, float scale, float* y,
                float* bias_gradient);

}  // namespace ddp
