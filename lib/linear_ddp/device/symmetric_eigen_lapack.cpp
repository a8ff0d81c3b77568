#include <cmath>
#include <vector>

#include "linear_ddp/base/checked.hpp"
#include "linear_ddp/base/error.hpp"
#include "linear_ddp/device/symmetric_eigen.hpp"

// Fortran's: column-major, and each text's length behind the arguments.
extern "C" void dsyevd_(const char* job, const char* triangle, const int* n, double* a, const int* leading,
                        double* values, double* work, const int* work_size, int* int_work, const int* int_work_size,
                        int* info, std::size_t, std::size_t);

namespace ddp {

void to_eigenvectors(std::span<double> a, std::span<double> values) {
  const int n = narrow<int>(std::ssize(values), "the number of features");
  if (n == 0) return;
  int info = 0;
  std::vector<double> work(1);
  std::vector<int> int_work(1);
  const auto call = [&](int work_size, int int_work_size) {
    dsyevd_("V", "U", &n, a.data(), &n, values.data(), work.data(), &work_size, int_work.data(), &int_work_size, &info,
            1, 1);
  };
  call(-1, -1);  // asks for the sizes
  work.resize(static_cast<std::size_t>(work[0]));
  int_work.resize(static_cast<std::size_t>(int_work[0]));
  call(narrow<int>(std::ssize(work), "the size of LAPACK's work space"), narrow<int>(std::ssize(int_work), "its size"));
  if (info != 0 || !std::isfinite(values.back())) {
    throw Error(Status::failed, "the eigenvalues of the features' products were not found; rescale the features");
  }
}

}  // namespace ddp
