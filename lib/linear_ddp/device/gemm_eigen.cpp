#include <fmt/format.h>

#include <Eigen/Core>

#include "linear_ddp/device/gemm.hpp"

namespace ddp::gemm {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using In = Eigen::Map<const Matrix<T>>;
template <class T>
using Out = Eigen::Map<Matrix<T>>;

template <class T, class Product>
void assign(Out<T> c, T beta, const Product& product) {
  if (beta == 0) {
    c.noalias() = product;
  } else {
    if (beta != 1) c *= beta;
    c.noalias() += product;
  }
}

}  // namespace

void product_nt(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float beta, float* c) {
  assign(Out<float>(c, m, n), beta, In<float>(a, m, k) * In<float>(b, n, k).transpose());
}

void product_tn(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float beta, float* c) {
  assign(Out<float>(c, m, n), beta, In<float>(a, k, m).transpose() * In<float>(b, k, n));
}

void product_nn(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float beta, float* c) {
  assign(Out<float>(c, m, n), beta, In<float>(a, m, k) * In<float>(b, k, n));
}

void product_nt(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double beta,
                double* c) {
  assign(Out<double>(c, m, n), beta, In<double>(a, m, k) * In<double>(b, n, k).transpose());
}

void product_tn(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double beta,
                double* c) {
  assign(Out<double>(c, m, n), beta, In<double>(a, k, m).transpose() * In<double>(b, k, n));
}

void add_gram(std::int64_t n, std::int64_t k, const double* a, double* c) {
  Out<double>(c, n, n).selfadjointView<Eigen::Lower>().rankUpdate(In<double>(a, k, n).transpose());
}

void solve_cholesky(std::int64_t n, std::int64_t m, const double* l, double* b) {
  const auto lower = In<double>(l, n, n).triangularView<Eigen::Lower>();
  Out<double> x(b, n, m);
  lower.solveInPlace(x);
  lower.transpose().solveInPlace(x);
}

std::string library() {
  return fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
}

void use_calling_thread_only() {}  // built without OpenMP, Eigen has no threads

}  // namespace ddp::gemm
