// Stand-in for libcublasLt.so.13: float32 products, summed in float64 by Eigen on the stream's worker. It refuses what
// the real library refuses or what would fault on a GPU; GELU, batches and other types are not modelled.
#include "fake_cublaslt.hpp"

#include <Eigen/Core>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace fakegpu {
namespace {

struct Problem {
  Product product;
  Layout a, b, c, d;

  [[nodiscard]] std::uint64_t m() const { return product.transpose_a == CUBLAS_OP_N ? a.rows : a.columns; }
  [[nodiscard]] std::uint64_t k() const { return product.transpose_a == CUBLAS_OP_N ? a.columns : a.rows; }
  [[nodiscard]] std::uint64_t n() const { return product.transpose_b == CUBLAS_OP_N ? b.columns : b.rows; }
  [[nodiscard]] std::uint64_t k_of_b() const { return product.transpose_b == CUBLAS_OP_N ? b.rows : b.columns; }
  [[nodiscard]] bool has(cublasLtEpilogue_t part) const { return (product.epilogue & part) != 0; }
  [[nodiscard]] std::uint64_t bias_length() const {
    if (has(CUBLASLT_EPILOGUE_BGRADB)) return n();
    return has(CUBLASLT_EPILOGUE_BIAS) || has(CUBLASLT_EPILOGUE_BGRADA) ? m() : 0;
  }
};

struct Operands {
  const float *a, *b, *c;
  float* d;
  float alpha, beta;
};

/// What a heuristic's opaque algorithm holds: the promises that it was chosen under.
struct Algorithm {
  std::uint64_t mark;
  Preference promised;
  std::uint32_t epilogue, m, n, k;
};
constexpr std::uint64_t right_mark = 0x66616b652d6c7431;
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

Algorithm algorithm_for(const Problem& problem, const Preference& promised) {
  const auto size = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  return {right_mark, promised, problem.product.epilogue, size(problem.m()), size(problem.n()), size(problem.k())};
}

std::uint64_t bytes(const Layout& layout) {
  const bool by_columns = layout.order == CUBLASLT_ORDER_COL;
  const std::uint64_t lines = by_columns ? layout.columns : layout.rows,
                      line = by_columns ? layout.rows : layout.columns;
  return ((lines - 1) * static_cast<std::uint64_t>(layout.ld) + line) * sizeof(float);
}

cublasStatus_t check(const Problem& problem) {
  const auto& [product, a, b, c, d] = problem;
  for (const Layout& layout : {a, b, c, d}) {
    if (layout.order != CUBLASLT_ORDER_COL && layout.order != CUBLASLT_ORDER_ROW) {
      return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "this order of a matrix is not modelled");
    }
    const std::uint64_t line = layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.columns;
    if (layout.rows == 0 || layout.columns == 0 || layout.ld < static_cast<std::int64_t>(line)) {
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "a matrix is empty, or its leading dimension too small");
    }
  }
  if (problem.k_of_b() != problem.k() || d.rows != problem.m() || d.columns != problem.n() || c.rows != d.rows ||
      c.columns != d.columns) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the shapes of the matrices do not fit each other");
  }
  switch (product.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      if (d.order == CUBLASLT_ORDER_COL) return CUBLAS_STATUS_SUCCESS;
      return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "epilogues of a row-major result are not modelled");
    default:
      return refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                    "epilogue " + std::to_string(product.epilogue) + " is unknown or not modelled");
  }
}

bool aligned(const void* pointer, std::uint32_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

cublasStatus_t check_algorithm(const Problem& problem, const Operands& operands, const cublasLtMatmulAlgo_t& opaque,
                               const void* workspace, std::size_t workspace_bytes) {
  Algorithm algorithm{};
  std::memcpy(static_cast<void*>(&algorithm), &opaque, sizeof(algorithm));
  const Preference& promised = algorithm.promised;
  const Algorithm expected = algorithm_for(problem, promised);
  if (algorithm.mark != expected.mark || algorithm.epilogue != expected.epilogue || algorithm.m != expected.m ||
      algorithm.n != expected.n || algorithm.k != expected.k) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the algorithm was chosen for another product");
  }
  if (!aligned(operands.a, promised.align_a) || !aligned(operands.b, promised.align_b) ||
      !aligned(operands.c, promised.align_c) || !aligned(operands.d, promised.align_d)) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "a matrix is less aligned than the heuristic was told");
  }
  if (workspace_bytes < promised.workspace) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the workspace is smaller than the algorithm needs");
  }
  if (promised.workspace > 0 && (!aligned(workspace, 256) || !is_device_range(workspace, workspace_bytes))) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the workspace is not device memory aligned to 256 bytes");
  }
  return CUBLAS_STATUS_SUCCESS;
}

/// A GPU would read or overwrite what happens to lie there, and say nothing.
void check_memory(const Problem& problem, const Operands& operands) {
  const auto inside = [](const char* what, const void* pointer, std::uint64_t size) {
    if (!is_device_range(pointer, size)) {
      die(std::string("cublasLtMatmul: ") + what + " is not inside one allocation of device memory");
    }
  };
  inside("A", operands.a, bytes(problem.a));
  inside("B", operands.b, bytes(problem.b));
  inside("D", operands.d, bytes(problem.d));
  if (operands.beta != 0) inside("C", operands.c, bytes(problem.c));
  if (problem.bias_length() > 0) inside("the bias", problem.product.bias, problem.bias_length() * sizeof(float));
  const auto begin = [](const float* matrix) { return reinterpret_cast<std::uintptr_t>(matrix); };
  const auto overlaps_d = [&](const float* matrix, const Layout& layout) {
    return begin(matrix) < begin(operands.d) + bytes(problem.d) && begin(operands.d) < begin(matrix) + bytes(layout);
  };
  if (overlaps_d(operands.a, problem.a) || overlaps_d(operands.b, problem.b)) die("cublasLtMatmul: D overlaps A or B");
}

template <class T>
auto view(T* values, const Layout& layout) {
  using Matrix = std::conditional_t<std::is_const_v<T>, const Eigen::MatrixXf, Eigen::MatrixXf>;
  using Stride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  const bool by_columns = layout.order == CUBLASLT_ORDER_COL;
  return Eigen::Map<Matrix, 0, Stride>(real(values), static_cast<Eigen::Index>(layout.rows),
                                       static_cast<Eigen::Index>(layout.columns),
                                       by_columns ? Stride(layout.ld, 1) : Stride(1, layout.ld));
}

Eigen::MatrixXd operand(const float* values, const Layout& layout, cublasOperation_t operation) {
  const Eigen::MatrixXd matrix = view(values, layout).cast<double>();
  return operation == CUBLAS_OP_N ? matrix : matrix.transpose();
}

void multiply(const Problem& problem, const Operands& operands) {
  const Eigen::MatrixXd a = operand(operands.a, problem.a, problem.product.transpose_a);
  const Eigen::MatrixXd b = operand(operands.b, problem.b, problem.product.transpose_b);
  Eigen::MatrixXd d = static_cast<double>(operands.alpha) * (a * b);
  // With a beta of 0 the real library does not read C, which may hold NaN.
  if (operands.beta != 0) d += static_cast<double>(operands.beta) * view(operands.c, problem.c).cast<double>();
  Eigen::Map<Eigen::VectorXf> bias(real(problem.product.bias), static_cast<Eigen::Index>(problem.bias_length()));
  if (problem.has(CUBLASLT_EPILOGUE_BIAS)) d.colwise() += bias.cast<double>();
  if (problem.has(CUBLASLT_EPILOGUE_RELU)) d = d.cwiseMax(0.0);
  if (problem.has(CUBLASLT_EPILOGUE_BGRADA)) bias = a.rowwise().sum().cast<float>();
  if (problem.has(CUBLASLT_EPILOGUE_BGRADB)) bias = b.colwise().sum().transpose().cast<float>();
  view(operands.d, problem.d) = d.cast<float>();
}

Problem problem_of(cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                   cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, const char* call) {
  return {*products().get(product, call), *layouts().get(a, call), *layouts().get(b, call), *layouts().get(c, call),
          *layouts().get(d, call)};
}

bool without_bias_gradients() {
  const char* text = std::getenv("LINEAR_DDP_FAKE_NO_EPILOGUES");
  return text != nullptr && std::string(text) == "1";
}

}  // namespace
}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  FAIL_IF_ASKED_TO;
  handles().get(handle, __func__);
  const Problem problem = problem_of(product, a, b, c, d, __func__);
  const Preference promised = *preferences().get(preference, __func__);
  if (requested < 1) return refuse(CUBLAS_STATUS_INVALID_VALUE, "no algorithm was asked for");
  *found = 0;
  if (const auto status = check(problem); status != CUBLAS_STATUS_SUCCESS) return status;
  const bool gradient = problem.has(CUBLASLT_EPILOGUE_BGRADA) || problem.has(CUBLASLT_EPILOGUE_BGRADB);
  if (gradient && without_bias_gradients()) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const std::uint32_t alignment : {promised.align_a, promised.align_b, promised.align_c, promised.align_d}) {
    if (alignment < sizeof(float)) return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "float32 is aligned to 4 bytes or more");
  }
  *results = {};
  const Algorithm algorithm = algorithm_for(problem, promised);
  std::memcpy(&results->algo, &algorithm, sizeof(algorithm));
  results->workspaceSize = promised.workspace;  // the hungriest algorithm: a program must be ready for it
  results->wavesCount = 1;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  FAIL_IF_ASKED_TO;
  handles().get(handle, __func__);
  const Problem problem = problem_of(product, a_layout, b_layout, c_layout, d_layout, __func__);
  const Operands operands{static_cast<const float*>(a),      static_cast<const float*>(b),
                          static_cast<const float*>(c),      static_cast<float*>(d),
                          *static_cast<const float*>(alpha), *static_cast<const float*>(beta)};
  if (const auto status = check(problem); status != CUBLAS_STATUS_SUCCESS) return status;
  if (c == d && (problem.c.ld != problem.d.ld || problem.c.order != problem.d.order)) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "C is D, in another layout");
  }
  if (problem.bias_length() > 0 && (problem.product.bias == nullptr || !aligned(problem.product.bias, 16))) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "an epilogue's bias is missing, or not aligned to 16 bytes");
  }
  if (algorithm != nullptr) {
    const auto status = check_algorithm(problem, operands, *algorithm, workspace, workspace_bytes);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  check_memory(problem, operands);
  const cudaError_t queued = enqueue(stream, "cublasLtMatmul", [=] { multiply(problem, operands); });
  return queued == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
