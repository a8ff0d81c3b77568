#include <cblas.h>

#include "linear_ddp/device/gemm.hpp"

namespace ddp::gemm {

void product_nt(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float beta, float* c) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1,
              a, static_cast<int>(k), b, static_cast<int>(k), beta, c, static_cast<int>(n));
}

void product_tn(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float beta, float* c) {
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1,
              a, static_cast<int>(m), b, static_cast<int>(n), beta, c, static_cast<int>(n));
}

void product_nn(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float beta, float* c) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k),
              1, a, static_cast<int>(k), b, static_cast<int>(n), beta, c, static_cast<int>(n));
}

void product_nt(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double beta,
                double* c) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1,
              a, static_cast<int>(k), b, static_cast<int>(k), beta, c, static_cast<int>(n));
}

void product_tn(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double beta,
                double* c) {
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1,
              a, static_cast<int>(m), b, static_cast<int>(n), beta, c, static_cast<int>(n));
}

void add_gram(std::int64_t n, std::int64_t k, const double* a, double* c) {
  cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, static_cast<int>(n), static_cast<int>(k), 1, a,
              static_cast<int>(n), 1, c, static_cast<int>(n));
}

void solve_cholesky(std::int64_t n, std::int64_t m, const double* l, double* b) {
  for (const CBLAS_TRANSPOSE transpose : {CblasNoTrans, CblasTrans}) {
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, transpose, CblasNonUnit, static_cast<int>(n), static_cast<int>(m),
                1, l, static_cast<int>(n), b, static_cast<int>(m));
  }
}

}  // namespace ddp::gemm
