#pragma once

#include <memory>
#include <span>
#include <vector>

#include <linear_ddp/launch/world.hpp>
#include <linear_ddp/optim/least_squares.hpp>

namespace ddp {

/// What a fit is worth on the rows that were held out from it.
struct RidgeScore {
  double mse;  ///< the mean over rows, weighted, and outputs
  /// The mean of the outputs' 1 - Σ w · error² / Σ w · (y - mean of these rows)², as scikit-learn's. Of a target that
  /// is constant: 1 when it is met, as far as double can tell, else 0. NaN for less than two rows.
  double r2;
};

struct RidgePath {
  std::vector<std::vector<RidgeScore>> scores;  ///< [held_out.size()][l2.size()]
  /// For solve_least_squares: of all rows, or, when not all parts are held out, of the others.
  std::shared_ptr<const Moments> moments;
};

/// Collective. Holds out each of the parts `held_out` in turn; for each of the penalties `l2`, the fit of all other
/// rows that minimises mean loss + l2/2 · ‖W‖² (the mean over the fit's rows, weighted, and outputs; the bias is free),
/// and its scores on the part's rows. The same bits on all ranks.
///
/// `part` [rows.rows] tells the part, 0 … parts - 1, of each of this rank's rows: the folds of a cross-validation, or 0
/// for training and 1 for validation. Throws AgreedError for values that overflow when squared, and when a part of
/// `held_out`, or all others, have no weight.
///
/// One pass over the rows, one eigendecomposition for each part that is held out, and in² operations for each penalty,
/// all in float64; memory for (parts + 6) · (in² + in · out) numbers a rank. Scores are differences of sums: the error
/// of an mse is about 1e-15 of the mean square of the targets' deviations from the fit's mean (without a bias: from 0).
/// The eigenvalues are those of the features as they are: what is below in · 2e-16 of the largest counts as 0, and with
/// l2 = 0 then as a direction without weight. Features of very different sizes should be standardised.
[[nodiscard]] RidgePath score_ridge_path(const World& world, const LeastSquaresRows& rows, std::span<const int> part,
                                         int parts, std::span<const int> held_out, std::span<const double> l2,
                                         bool bias);

}  // namespace ddp
