#include <fmt/format.h>

#include <Eigen/Core>

#include "linear_ddp/device/gemm.hpp"

namespace ddp::gemm {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using In = Eigen::Map<const Matrix>;
using Out = Eigen::Map<Matrix>;

template <class Product>
void assign(Out c, float beta, const Product& product) {
  if (beta == 0) {
    c.noalias() = product;
  } else {
    if (beta != 1) c *= beta;
    c.noalias() += product;
  }
}

}  // namespace

void product_nt(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float beta, float* c) {
  assign(Out(c, m, n), beta, In(a, m, k) * In(b, n, k).transpose());
}

void product_tn(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float beta, float* c) {
  assign(Out(c, m, n), beta, In(a, k, m).transpose() * In(b, k, n));
}

std::string library() {
  return fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
}

void use_calling_thread_only() {}  // built without OpenMP, Eigen has no threads

}  // namespace ddp::gemm
