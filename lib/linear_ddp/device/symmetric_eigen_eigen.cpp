#include <Eigen/Eigenvalues>
#include <cmath>

#include "linear_ddp/base/error.hpp"
#include "linear_ddp/device/symmetric_eigen.hpp"

namespace ddp {

void to_eigenvectors(std::span<double> a, std::span<double> values) {
  const auto n = std::ssize(values);
  if (n == 0) return;
  Eigen::Map<Eigen::MatrixXd> matrix(a.data(), n, n);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix);
  if (solver.info() != Eigen::Success || !std::isfinite(solver.eigenvalues()[n - 1])) {
    throw Error(Status::failed, "the eigenvalues of the features' products were not found; rescale the features");
  }
  Eigen::Map<Eigen::VectorXd>(values.data(), n) = solver.eigenvalues();
  matrix = solver.eigenvectors();
}

}  // namespace ddp
