#pragma once

#include <algorithm>
#include <cstdint>

/// Products with so few outputs that reading x is what they cost. In tiles of rows that stay in the first-level cache,
/// the forward product and the weight gradient together read x from memory once.
namespace ddp::skinny {

inline constexpr std::int64_t most = 8;  ///< outputs; with more a BLAS is as fast

[[nodiscard]] constexpr bool serves(std::int64_t in, std::int64_t out) {
  return out <= most && in >= 16;
}

/// Rows of x that are some 16 KiB together, so that the weights fit beside them.
[[nodiscard]] constexpr std::int64_t rows_of_a_tile(std::int64_t in) {
  return std::clamp(4096 / in, std::int64_t{4}, std::int64_t{256});
}

/// y[rows, out] = x[rows, in] · weight[out, in]ᵀ + bias[out]; bias may be null.
void forward(std::int64_t rows, std::int64_t in, std::int64_t out, const float* x, const float* weight,
             const float* bias, float* y);

/// gradient[out, in] += dy[rows, out]ᵀ · x[rows, in], or = without `add`.
void weight_gradient(std::int64_t rows, std::int64_t in, std::int64_t out, const float* x, const float* dy, bool add,
                     float* gradient);

}  // namespace ddp::skinny
