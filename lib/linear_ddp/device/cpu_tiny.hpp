#pragma once

#include <cstddef>
#include <utility>

#include <linear_ddp/device/operations.hpp>

/// A layer so small that calling a BLAS costs more than its products: forward, MSE, and gradients in one sweep over the
/// rows, the outputs of a row in registers, the weights in the first-level cache.
namespace ddp::tiny {

inline constexpr std::size_t most = 16;  ///< inputs, and outputs

/// With more rows a BLAS is faster again, and more exact: here the gradients' sums run over the rows one by one, in
/// float.
[[nodiscard]] constexpr bool serves(const LinearLoss& op) {
  return op.kind == LossKind::mse && op.heads == 1 && op.row_weight == nullptr && !op.add && op.input.dz == nullptr &&
         std::cmp_less_equal(op.in, most) && std::cmp_less_equal(op.out, most) && op.rows <= 64;
}

/// The loss and gradients of `op`; returns Σ l in float64. Precondition: serves(op) and op.weight_gradient.
double mse_step(const LinearLoss& op);

}  // namespace ddp::tiny
