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

/// Fits of the rows of a table without some part of them, scored on that part, all in float64.
class RidgePath {
 public:
  /// Collective, one pass over the rows. `part` [rows.rows] tells the part, 0 … parts - 1, of each of this rank's rows:
  /// the folds of a cross-validation, or 0 for training and 1 for validation. Keeps parts · (in² + in · out) numbers on
  /// each rank, and half as much again for a part while they are summed. Throws AgreedError for values that overflow
  /// when squared.
  RidgePath(const World& world, const LeastSquaresRows& rows, std::span<const int> part, int parts);
  ~RidgePath();
  RidgePath(const RidgePath&) = delete;
  RidgePath& operator=(const RidgePath&) = delete;

  /// Collective. Holds out each of the parts `held_out` in turn; for each of the penalties `l2`, the fit of all other
  /// rows that minimises mean loss + l2/2 · ‖W‖² (the mean over the fit's rows, weighted, and outputs; the bias is
  /// free), and its scores on the part's rows: [held_out.size()][l2.size()], the same bits on all ranks. Throws
  /// AgreedError when a part, or all others, have no weight.
  ///
  /// One eigendecomposition a part, and then in² operations a penalty. The parts, and the targets of those left over,
  /// are dealt out to the ranks. Scores are differences of sums: the error of an mse is about 1e-15 of the mean square
  /// of the targets' deviations from the fit's mean (without a bias: from 0), times the condition of the features'
  /// products. Eigenvalues that with the penalty's λ are below in · 2e-16 of the largest count as 0: of several fits
  /// the one with the smallest ‖W‖ is taken. Features whose sizes differ by more than 10³ take a Cholesky decomposition
  /// a penalty, which is slower; where they are dependent too, the small ones are lost: standardise them.
  [[nodiscard]] std::vector<std::vector<RidgeScore>> scores(std::span<const int> held_out, std::span<const double> l2,
                                                            bool bias) const;

  /// Of the rows of some parts, which must have a weight: for LeastSquaresRows of just these rows.
  [[nodiscard]] std::shared_ptr<const Moments> moments(std::span<const int> parts, bool bias) const;

 private:
  const World& world_;
  std::vector<Moments> parts_;
};

}  // namespace ddp
