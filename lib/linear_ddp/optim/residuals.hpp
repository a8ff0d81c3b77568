#pragma once

#include <Eigen/Core>

#include <linear_ddp/optim/moments.hpp>

namespace ddp {

/// The sums of squares of the residuals, and their products with the features.
struct Residuals {
  Eigen::VectorXd squares, mean;
  Eigen::MatrixXd gradient;  ///< [in, out]
};

/// Collective, one pass: of the rows, centred as the moments are, with weights w [in, out] and a bias of `shift` beside
/// their means. The same bits on all ranks.
[[nodiscard]] Residuals residuals_of(const World& world, const LeastSquaresRows& rows, const Moments& moments,
                                     const Eigen::MatrixXd& w, const Eigen::VectorXd& shift);

}  // namespace ddp
