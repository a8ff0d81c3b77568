#pragma once

#include <Eigen/Core>

#include <linear_ddp/optim/scaled_columns.hpp>

namespace ddp {

/// The eigenvalues of a symmetric matrix, ascending; its columns become the eigenvectors. CMake chooses
/// symmetric_eigen_lapack.cpp, or, without a LAPACK, symmetric_eigen_eigen.cpp. Throws Error when it does not converge.
[[nodiscard]] Eigen::VectorXd symmetric_eigen(RowMajorMatrix& matrix);

}  // namespace ddp
