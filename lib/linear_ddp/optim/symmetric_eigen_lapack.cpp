#include <vector>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/base/error.hpp>
#include "linear_ddp/optim/symmetric_eigen.hpp"

// LAPACK's own name: BLAS packages do not all have a C header for it.
extern "C" void dsyevd_(const char* job, const char* triangle, const int* n, double* a, const int* lda, double* values,
                        double* work, const int* work_size, int* int_work, const int* int_work_size, int* info,
                        std::size_t job_length, std::size_t triangle_length);

namespace ddp {

Eigen::VectorXd symmetric_eigen(RowMajorMatrix& matrix) {
  const int n = narrow<int>(matrix.rows(), "the number of features");
  Eigen::VectorXd values(n);
  if (n == 0) return values;
  int info = 0;
  std::vector<double> work(1);
  std::vector<int> int_work(1);
  const auto call = [&](int work_size, int int_work_size) {
    dsyevd_("V", "U", &n, matrix.data(), &n, values.data(), work.data(), &work_size, int_work.data(), &int_work_size,
            &info, 1, 1);
  };
  call(-1, -1);  // asks for how much room it wants
  work.resize(static_cast<std::size_t>(work[0]));
  int_work.resize(static_cast<std::size_t>(int_work[0]));
  call(narrow<int>(work.size(), "LAPACK's room"), narrow<int>(int_work.size(), "LAPACK's room"));
  if (info != 0) fail("find the eigenvalues of the features' products", "LAPACK's dsyevd did not converge");
  matrix.transposeInPlace();  // LAPACK's columns are our rows
  return values;
}

}  // namespace ddp
