#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <linear_ddp/launch/world.hpp>
#include <linear_ddp/optim/least_squares.hpp>

namespace ddp {

/// What a fit is worth on the rows that were held out from it. Of sums of squares that cancel: relative to the squares
/// of the targets' deviations, about 15 digits are right.
struct RidgeScore {
  double mse;  ///< mean over rows, weighted, and outputs
  double r2;   ///< mean of the outputs', as scikit-learn's r2_score; of a constant one 1 when it is met, else 0
};

/// Rows in parts, some of which are held out in turn.
struct HeldOutParts {
  std::span<const int> part;  ///< [rows], of this rank's rows, from 0 on
  int parts = 1;              ///< in all
  std::vector<int> held_out;  ///< for K folds 0 … K - 1
};

struct RidgePath {
  std::vector<std::vector<RidgeScore>> scores;  ///< [held_out][l2]
  /// For solve_least_squares: of all rows, or, where some are in no fit, of the others.
  std::shared_ptr<const Moments> moments;
};

/// Collective. For each part that is held out, and each penalty, the fit of all other rows that minimises mean loss
/// (of rows and outputs) + l2/2 · ‖W‖², scored on the part. The same bits on all ranks.
///
/// One pass over the rows, which makes float64 sums of products for each part: parts · (in² + in · out) numbers of
/// memory on each rank. A fit has the sums of its parts; one eigendecomposition of it, by one of the ranks, serves all
/// penalties, and the part's own sums tell the squares of its errors without a prediction (Golub, Van Loan, Matrix
/// Computations, 6.1.4; Hastie et al., The Elements of Statistical Learning, 3.4.1).
[[nodiscard]] RidgePath score_ridge_path(const World& world, const LeastSquaresRows& rows, const HeldOutParts& parts,
                                         std::span<const double> l2, bool bias);

}  // namespace ddp
