#pragma once

#include <Eigen/Core>

#include <linear_ddp/optim/moments.hpp>

namespace ddp {

/// The errors on held-out rows of ridge fits to others, one for each penalty λ, from the moments of both and without
/// predictions, in the eigenbasis of the fits' features: W = Q · D · C, with C = Qᵀ · xy and
/// D = diag(1 / (eigenvalue + λ)).
class HeldOutErrors {
 public:
  /// `held` has deviations from the means of `fit`.
  HeldOutErrors(const Moments& fit, const Moments& held, const Eigen::VectorXd& lambdas);

  /// For each penalty Σ scaleₜ · (sum of squared errors of target t). With d for D's diagonal, that is
  /// Σ scaleₜ · yyₜ - 2 · dᵀ · (C ∘ Qᵀ · held xy) · scale + dᵀ · (Qᵀ · held xx · Q ∘ C · diag(scale) · Cᵀ) · d.
  [[nodiscard]] Eigen::VectorXd of(const Eigen::VectorXd& scale) const;

 private:
  bool solve_each(const Moments& fit, const Moments& held, const Eigen::VectorXd& lambdas);

  Eigen::MatrixXd each_;                   ///< [out, penalties]: the sums themselves, where they were solved for
  Eigen::MatrixXd factors_;                ///< [in, penalties]: D's diagonals
  Eigen::MatrixXd c_, held_xy_, held_xx_;  ///< C, Qᵀ · held xy, Qᵀ · held xx · Q
  Eigen::VectorXd yy_;
};

}  // namespace ddp
