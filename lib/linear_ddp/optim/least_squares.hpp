#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <linear_ddp/launch/world.hpp>

namespace ddp {

struct Moments;  ///< sums over the rows, which solvers share

/// This rank's rows of a table, of which the ranks have the same columns.
struct LeastSquaresRows {
  /// Some rows: x [rows, in] and y [rows, out], row-major; weight [rows], or null for all 1.
  struct Block {
    std::int64_t rows;
    const double *x, *y, *weight;
  };
  std::int64_t rows = 0, in = 0, out = 0;
  /// Calls visit with all rows, a block at a time and always in the same order. May throw.
  std::function<void(const std::function<void(const Block&)>& visit)> each_block;
  /// Of all ranks' rows, where RidgePath has them: that saves solve_least_squares a pass.
  std::shared_ptr<const Moments> moments = nullptr;
};

struct LeastSquaresOptions {
  bool bias = true;
  double ridge = 0;            ///< λ ≥ 0
  bool extra_precise = false;  ///< every digit of double, at the price of this rank's rows twice in memory
  bool standard_errors = false;
};

struct LeastSquaresSolution {
  enum class Method { normal_equations, qr, refined_qr };

  std::vector<double> weight, bias;  ///< [out, in], [out]; without a bias empty
  Method method = Method::normal_equations;
  /// The largest singular value beside the smallest, estimated, of the columns scaled to norms near 1: centred ones,
  /// but for refined_qr the raw ones and, with a bias, a column of ones. Infinite when columns are dependent.
  double condition = 0;
  std::int64_t rank = 0;                ///< of those columns
  std::vector<std::int64_t> dependent;  ///< features that are linear combinations of the others; `in` for the bias
  int refinements = 0;                  ///< corrections after the first solution
  bool converged = false;               ///< the last one changed nothing that counts
  std::vector<double> square_sums;      ///< [out], Σ weight · residual²
  /// [out, in] and [out], as asked for: s · √((AᵀA)⁻¹ⱼⱼ), where s² = square_sums / (rows - unknowns). NaN when there
  /// are no more rows than unknowns, or columns are dependent.
  std::vector<double> weight_errors, bias_errors;
};

/// Collective. The w and b that minimise Σ weight · ‖y - W x - b‖² + λ · ‖W‖² over all ranks' rows, all sums in
/// float64; of several minima the one with the smallest ‖W‖. The same bits on all ranks.
///
/// Normal equations of centred columns, by Cholesky, corrected with residuals of the rows until that changes nothing
/// (or at once, where the condition below 16 says that it would not, and the targets are not nearly met); where the
/// columns are nearly dependent (condition above 10⁶), QR over the ranks. With extra_precise: QR, refined to the last
/// digit (see solve_augmented). Throws AgreedError for values that overflow when squared.
[[nodiscard]] LeastSquaresSolution solve_least_squares(const World& world, const LeastSquaresRows& rows,
                                                       const LeastSquaresOptions& options);

[[nodiscard]] std::string_view name_of(LeastSquaresSolution::Method method);

}  // namespace ddp
