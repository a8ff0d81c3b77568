#pragma once

#include <Eigen/Core>

#include <linear_ddp/launch/world.hpp>
#include <linear_ddp/optim/tall_skinny_qr.hpp>

namespace ddp {

/// Solution of the augmented system of least squares with all digits of double precision.
struct RefinedSolution {
  Eigen::MatrixXd x;  ///< [columns of A, right sides]; the same bits on all ranks
  Eigen::MatrixXd r;  ///< this rank's rows
  int rounds = 0;
  bool converged = false;  ///< every x to the last place, as far as the corrections tell
};

/// Collective. Solves [I A; Aᵀ 0] · [r; x] = [b; c] by refinement (Björck, 1967): corrections come from QR in double
/// precision, while x, r and both equations' residuals are kept in double-double. With c = 0, x minimises ‖b - A x‖;
/// with b = 0 and c = -I, it is (AᵀA)⁻¹. Each rank has its rows of A and b, and the whole of c.
[[nodiscard]] RefinedSolution solve_augmented(const World& world, const Eigen::MatrixXd& a, const TallSkinnyQr& qr,
                                              const Eigen::MatrixXd& b, const Eigen::MatrixXd& c);

}  // namespace ddp
