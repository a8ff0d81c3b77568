#pragma once

#include <cstdint>
#include <string>

/// Matrix products of the CPU device. Row-major and dense. CMake chooses: gemm_blas.cpp with gemm_openblas.cpp or
/// gemm_other_blas.cpp, else gemm_eigen.cpp.
namespace ddp::gemm {

/// c[m, n] = a[m, k] · b[n, k]ᵀ + beta · c; with beta 0, c is not read.
void product_nt(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float beta, float* c);

/// c[m, n] = a[k, m]ᵀ · b[k, n] + beta · c
void product_tn(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float beta, float* c);

/// c[m, n] = a[m, k] · b[k, n] + beta · c
void product_nn(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float beta, float* c);

/// The first two in double precision.
void product_nt(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double beta,
                double* c);
void product_tn(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double beta,
                double* c);

/// The lower triangle of c[n, n] += a[k, n]ᵀ · a[k, n]; the other one is left as it is.
void add_gram(std::int64_t n, std::int64_t k, const double* a, double* c);

/// b[n, m] ← (l · lᵀ)⁻¹ · b, of a lower triangle l[n, n].
void solve_cholesky(std::int64_t n, std::int64_t m, const double* l, double* b);

/// "OpenBLAS 0.3.21 (Zen)", "Eigen 3.4.0"
std::string library();

/// Keeps the library from threads of its own: a rank's cores are shared out by the launcher.
void use_calling_thread_only();

}  // namespace ddp::gemm
