#include <linear_ddp/device/cuda_matmul.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "kernels/columns.hpp"

namespace ddp {
namespace {

constexpr std::size_t workspace_bytes = std::size_t{32} << 20;  // what NVIDIA advises for Hopper

std::uintptr_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  return address & (~address + 1);
}

/// Epilogues fault on a bias vector that is less aligned; the heuristic does not know of it. Marian met 16 on an A100:
/// https://marian-nmt.github.io/docs/api/api/program_listing_file_src_tensors_gpu_prod.cpp.html
bool fits_epilogue(const float* bias) {
  return bias != nullptr && alignment_of(bias) >= 16;
}

template <class T>
void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof(value)), "describe a matrix product");
}

template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
        "say what an algorithm may use");
}

CudaHandle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> layout(std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t raw = nullptr;
  check(cublasLtMatrixLayoutCreate(&raw, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "describe a matrix");
  return CudaHandle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>(raw);
}

}  // namespace

CudaMatmul::CudaMatmul(cudaStream_t stream)
    : stream_(stream),
      workspace_(cuda_memory(workspace_bytes)),
      column_partials_(cuda_memory(kernels::max_column_partials * sizeof(double))) {
  cublasLtHandle_t raw = nullptr;
  check(cublasLtCreate(&raw), "start cuBLASLt");
  handle_.reset(raw);
}

/// Rows of ten floats begin at any multiple of 8 bytes, and cuBLASLt's heuristic takes 256 for granted unless told. No
/// load is wider than 16 bytes; a finer distinction would only make more plans.
std::uint32_t CudaMatmul::alignment(const void* pointer) const noexcept {
  return static_cast<std::uint32_t>(std::min<std::uintptr_t>(alignment_of(pointer), finest_));
}

// cuBLASLt is column-major and ours is row-major, so it sees every matrix transposed. The leading dimension, ours the
// length of a row, is its number of rows.

// y = x·Wᵀ is yᵀ = W·xᵀ: A is W (seen as [in, out], so OP_T), B is x ([in, rows]); the bias is added to each row of D.
bool CudaMatmul::forward(std::int64_t rows, std::int64_t in, std::int64_t out, const float* x, const float* weight,
                         const float* bias, float* y, bool relu) {
  const auto epilogue = !fits_epilogue(bias) ? CUBLASLT_EPILOGUE_DEFAULT
                        : relu               ? CUBLASLT_EPILOGUE_RELU_BIAS
                                             : CUBLASLT_EPILOGUE_BIAS;
  const Key key{Product::forward, epilogue, rows, in, out, alignment(weight), alignment(x), alignment(y)};
  const Plan& plan = plan_of(key, bias);
  const bool add = bias != nullptr && !plan.epilogue;
  if (add) check(kernels::fill_rows(rows, out, bias, y, stream_), "queue the filling of rows with the bias");
  multiply(key, plan, weight, x, add ? 1.0F : 0.0F, y);
  return relu && plan.epilogue;
}

// dx = dy·W is dxᵀ = Wᵀ·dyᵀ: A is W (seen as [in, out]), B is dy ([out, rows]).
void CudaMatmul::input_gradient(std::int64_t rows, std::int64_t in, std::int64_t out, const float* dy,
                                const float* weight, float* dx) {
  const Key key{Product::input_gradient,
                CUBLASLT_EPILOGUE_DEFAULT,
                rows,
                in,
                out,
                alignment(weight),
                alignment(dy),
                alignment(dx)};
  multiply(key, plan_of(key, nullptr), weight, dy, 0, dx);
}

// dW = dyᵀ·x is dWᵀ = xᵀ·dy: A is x ([in, rows]), B is dy ([out, rows], so OP_T); its sums over the rows come with it.
// The epilogue has no beta: it can't add to them.
void CudaMatmul::gradient(std::int64_t rows, std::int64_t in, std::int64_t out, const float* x, const float* dy,
                          bool add, float* weight_gradient, float* bias_gradient) {
  const auto epilogue = !add && fits_epilogue(bias_gradient) ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_DEFAULT;
  const Key key{Product::gradient, epilogue, rows, in, out, alignment(x), alignment(dy), alignment(weight_gradient)};
  const Plan& plan = plan_of(key, bias_gradient);
  multiply(key, plan, x, dy, add ? 1.0F : 0.0F, weight_gradient);
  if (bias_gradient == nullptr || plan.epilogue) return;
  check(kernels::sum_columns(rows, out, dy, add, bias_gradient, static_cast<double*>(column_partials_.get()), stream_),
        "queue the sums of columns");
}

std::string CudaMatmul::text_of(const Key& key) {
  const char* product = key.product == Product::forward          ? "forward product"
                        : key.product == Product::input_gradient ? "gradient of the inputs"
                                                                 : "weight gradient";
  return fmt::format("the {} of Linear({} → {}) for {} rows{}", product, key.in, key.out, key.rows,
                     key.epilogue == CUBLASLT_EPILOGUE_DEFAULT ? "" : " with its bias");
}

const CudaMatmul::Plan& CudaMatmul::plan_of(const Key& key, const float* bias) {
  auto found = plans_.find(key);
  if (found == plans_.end()) found = plans_.emplace(key, make_plan(key, bias)).first;
  if (found->second.epilogue) set(found->second.product.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  return found->second;
}

CudaMatmul::Plan CudaMatmul::make_plan(const Key& key, const float* bias) const {
  cublasLtMatmulDesc_t raw = nullptr;
  check(cublasLtMatmulDescCreate(&raw, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe a matrix product");
  Plan plan;
  plan.product.reset(raw);
  switch (key.product) {
    case Product::forward:
      set(raw, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
      std::tie(plan.a, plan.b, plan.d) =
          std::tuple(layout(key.in, key.out), layout(key.in, key.rows), layout(key.out, key.rows));
      break;
    case Product::input_gradient:
      std::tie(plan.a, plan.b, plan.d) =
          std::tuple(layout(key.in, key.out), layout(key.out, key.rows), layout(key.in, key.rows));
      break;
    case Product::gradient:
      set(raw, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
      std::tie(plan.a, plan.b, plan.d) =
          std::tuple(layout(key.in, key.rows), layout(key.out, key.rows), layout(key.in, key.out));
      break;
  }
  if (key.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    set(raw, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    plan.epilogue = find_algorithm(key, plan, key.epilogue);
  }
  if (!plan.epilogue && !find_algorithm(key, plan, CUBLASLT_EPILOGUE_DEFAULT)) {
    fail_cuda(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("find an algorithm for {}", text_of(key)));
  }
  return plan;
}

/// Which shapes have which epilogue differs from version to version, so cuBLASLt is asked; false when it has none.
bool CudaMatmul::find_algorithm(const Key& key, Plan& plan, cublasLtEpilogue_t epilogue) const {
  set(plan.product.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  cublasLtMatmulPreference_t raw = nullptr;
  check(cublasLtMatmulPreferenceCreate(&raw), "say what an algorithm may use");
  const CudaHandle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference(raw);
  set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.align_a);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.align_b);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.align_d);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.align_d);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_.get(), plan.product.get(), plan.a.get(), plan.b.get(), plan.d.get(), plan.d.get(), raw, 1, &best, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) return false;
  if (status != CUBLAS_STATUS_SUCCESS) fail_cuda(status, fmt::format("find an algorithm for {}", text_of(key)));
  plan.algorithm = best.algo;
  return true;
}

void CudaMatmul::multiply(const Key& key, const Plan& plan, const float* a, const float* b, float beta, float* d) {
  constexpr float alpha = 1;
  const cublasStatus_t status =
      cublasLtMatmul(handle_.get(), plan.product.get(), &alpha, a, plan.a.get(), b, plan.b.get(), &beta, d,
                     plan.d.get(), d, plan.d.get(), &plan.algorithm, workspace_.get(), workspace_bytes, stream_);
  if (status != CUBLAS_STATUS_SUCCESS) fail_cuda(status, fmt::format("queue {}", text_of(key)));
}

}  // namespace ddp
