#pragma once

#include <cstdint>
#include <span>

namespace ddp {

/// a = Σ values[i] · rowᵢᵀ · rowᵢ: the eigenvalues of the symmetric a[n, n] in ascending order, and in its place rows
/// of eigenvectors. Throws Error when they are not found, as for values that are no numbers. CMake chooses:
/// symmetric_eigen_lapack.cpp, where the BLAS of gemm.hpp has LAPACK in it, else symmetric_eigen_eigen.cpp.
void to_eigenvectors(std::span<double> a, std::span<double> values);

}  // namespace ddp
