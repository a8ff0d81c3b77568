#include <Eigen/Eigenvalues>

#include <linear_ddp/base/error.hpp>
#include "linear_ddp/optim/symmetric_eigen.hpp"

namespace ddp {

Eigen::VectorXd symmetric_eigen(RowMajorMatrix& matrix) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix);
  if (solver.info() != Eigen::Success) fail("find the eigenvalues of the features' products", "it did not converge");
  matrix = solver.eigenvectors();
  return solver.eigenvalues();
}

}  // namespace ddp
