// The stand-in for cuBLASLt: what it computes, and that it refuses what must not pass for right. Operands are small
// whole numbers, so that every result is exact in float32.
#include <cublasLt.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "on_stream.hpp"

namespace ddp {
namespace {

using test::DeviceFloats;
using test::Floats;

Floats numbers(std::size_t count, int seed) {
  Floats values(count);
  for (std::size_t at = 0; at < count; ++at) values[at] = static_cast<float>((static_cast<int>(at) * 7 + seed) % 9 - 4);
  return values;
}

/// op(A) of 3 x 5, op(B) of 5 x 4, D of 3 x 4, each with a leading dimension of 6.
class CublasLt : public test::OnStream {
 protected:
  static constexpr int m = 3, n = 4, k = 5, ld = 6;
  static constexpr std::size_t workspace_bytes = 4096;

  void SetUp() override {
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference_), CUBLAS_STATUS_SUCCESS);
    const std::uint32_t four = 4;
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      ASSERT_EQ(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &four, 4), CUBLAS_STATUS_SUCCESS);
    }
    ASSERT_EQ(cublasLtMatmulPreferenceSetAttribute(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &workspace_bytes, sizeof(workspace_bytes)),
              CUBLAS_STATUS_SUCCESS);
    describe(CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_ORDER_COL, CUBLASLT_EPILOGUE_DEFAULT);
  }
  void TearDown() override {
    for (const auto layout : {a_, b_, d_}) EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference_), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescDestroy(product_), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtDestroy(handle_), CUBLAS_STATUS_SUCCESS);
  }

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(product_, attribute, &value, sizeof(value)), CUBLAS_STATUS_SUCCESS);
  }
  static void layout(cublasLtMatrixLayout_t& layout, int rows, int columns, cublasLtOrder_t order, int stride = ld) {
    if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    ASSERT_EQ(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                         static_cast<std::uint64_t>(columns), stride),
              CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof(order)),
              CUBLAS_STATUS_SUCCESS);
  }
  void describe(cublasOperation_t a, cublasOperation_t b, cublasLtOrder_t order, cublasLtEpilogue_t epilogue) {
    set(CUBLASLT_MATMUL_DESC_TRANSA, a);
    set(CUBLASLT_MATMUL_DESC_TRANSB, b);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    layout(a_, a == CUBLAS_OP_N ? m : k, a == CUBLAS_OP_N ? k : m, order);
    layout(b_, b == CUBLAS_OP_N ? k : n, b == CUBLAS_OP_N ? n : k, order);
    layout(d_, m, n, order);
  }
  cublasStatus_t find(cublasLtMatmulAlgo_t& algorithm) {
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const auto status =
        cublasLtMatmulAlgoGetHeuristic(handle_, product_, a_, b_, d_, d_, preference_, 1, &result, &found);
    EXPECT_EQ(found, status == CUBLAS_STATUS_SUCCESS ? 1 : 0);
    algorithm = result.algo;
    return status;
  }
  cublasStatus_t multiply(const cublasLtMatmulAlgo_t& algorithm, const float* a, float beta, float* d, void* workspace,
                          std::size_t bytes = workspace_bytes) {
    float alpha = 2;
    const auto status = cublasLtMatmul(handle_, product_, &alpha, a, a_, in_b_.data(), b_, &beta, d, d_, d, d_,
                                       &algorithm, workspace, bytes, stream_);
    alpha = beta = NAN;  // host scalars are read at the call
    return status;
  }

  Floats host_a_ = numbers(ld * ld, 1), host_b_ = numbers(ld * ld, 2), host_d_ = numbers(ld * ld, 3);
  DeviceFloats in_a_{host_a_, stream_}, in_b_{host_b_, stream_}, out_{host_d_, stream_}, bias_{numbers(8, 4), stream_},
      workspace_{Floats(1024), stream_};
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

TEST_F(CublasLt, ComputesWhatItsTransposesOrdersAndEpiloguesSay) {
  using Case = std::tuple<cublasOperation_t, cublasOperation_t, cublasLtOrder_t, cublasLtEpilogue_t>;
  constexpr auto N = CUBLAS_OP_N, T = CUBLAS_OP_T;
  constexpr auto by_columns = CUBLASLT_ORDER_COL, by_rows = CUBLASLT_ORDER_ROW;
  for (const auto& [op_a, op_b, order, epilogue] :
       {Case{N, N, by_columns, CUBLASLT_EPILOGUE_DEFAULT}, Case{N, N, by_rows, CUBLASLT_EPILOGUE_DEFAULT},
        Case{T, T, by_rows, CUBLASLT_EPILOGUE_DEFAULT}, Case{T, N, by_columns, CUBLASLT_EPILOGUE_BIAS},
        Case{N, T, by_columns, CUBLASLT_EPILOGUE_RELU}, Case{T, T, by_columns, CUBLASLT_EPILOGUE_RELU_BIAS},
        Case{N, T, by_columns, CUBLASLT_EPILOGUE_BGRADA}, Case{T, N, by_columns, CUBLASLT_EPILOGUE_BGRADA},
        Case{N, T, by_columns, CUBLASLT_EPILOGUE_BGRADB}, Case{N, N, by_columns, CUBLASLT_EPILOGUE_BGRADB}}) {
    for (const float beta : {0.0F, -1.0F}) {
      DeviceFloats d(host_d_, stream_), bias(numbers(8, 4), stream_);
      describe(op_a, op_b, order, epilogue);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.data());
      cublasLtMatmulAlgo_t algorithm;
      ASSERT_EQ(find(algorithm), CUBLAS_STATUS_SUCCESS);
      ASSERT_EQ(multiply(algorithm, in_a_.data(), beta, d.data(), workspace_.data()), CUBLAS_STATUS_SUCCESS);
      const auto place = [order_ = order](int row, int column) {
        return static_cast<std::size_t>(order_ == by_columns ? row + column * ld : row * ld + column);
      };
      const auto A = [&, op = op_a](int i, int j) { return host_a_[op == N ? place(i, j) : place(j, i)]; };
      const auto B = [&, op = op_b](int i, int j) { return host_b_[op == N ? place(i, j) : place(j, i)]; };
      Floats expected = host_d_, expected_bias = numbers(8, 4), sums_a(m), sums_b(n);
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          float sum = 0;
          for (int l = 0; l < k; ++l) sum += A(i, l) * B(l, j);
          float& value = expected[place(i, j)];
          value = 2 * sum + beta * value;
          if (epilogue & CUBLASLT_EPILOGUE_BIAS) value += expected_bias[static_cast<std::size_t>(i)];
          if (epilogue & CUBLASLT_EPILOGUE_RELU) value = std::max(value, 0.0F);
        }
      }
      for (int l = 0; l < k; ++l) {
        for (int i = 0; i < m; ++i) sums_a[static_cast<std::size_t>(i)] += A(i, l);
        for (int j = 0; j < n; ++j) sums_b[static_cast<std::size_t>(j)] += B(l, j);
      }
      if (epilogue == CUBLASLT_EPILOGUE_BGRADA) std::copy(sums_a.begin(), sums_a.end(), expected_bias.begin());
      if (epilogue == CUBLASLT_EPILOGUE_BGRADB) std::copy(sums_b.begin(), sums_b.end(), expected_bias.begin());
      EXPECT_EQ(d.values(), expected) << op_a << op_b << ", order " << order << ", epilogue " << epilogue;
      EXPECT_EQ(bias.values(), expected_bias) << op_a << op_b << ", epilogue " << epilogue;
    }
  }
}

TEST_F(CublasLt, RefusesWhatTheRealOneRefuses) {
  cublasLtMatmulAlgo_t algorithm, other;
  ASSERT_EQ(find(algorithm), CUBLAS_STATUS_SUCCESS);
  float *a = in_a_.data(), *d = out_.data();
  const auto run = [&](const float* from, float* workspace, std::size_t bytes = workspace_bytes) {
    return multiply(algorithm, from, 0, d, workspace, bytes);
  };
  EXPECT_EQ(run(a, workspace_.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(a, workspace_.data(), workspace_bytes - 256), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(a, workspace_.data() + 4), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(a, host_a_.data()), CUBLAS_STATUS_INVALID_VALUE);

  const std::uint32_t sixteen = 16;
  cublasLtMatmulPreferenceSetAttribute(preference_, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &sixteen, 4);
  ASSERT_EQ(find(algorithm), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(a + 4, workspace_.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(a + 2, workspace_.data()), CUBLAS_STATUS_INVALID_VALUE);

  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_.data());
  EXPECT_EQ(run(a, workspace_.data()), CUBLAS_STATUS_INVALID_VALUE) << "an algorithm of another epilogue";
  ASSERT_EQ(find(algorithm), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(a, workspace_.data()), CUBLAS_STATUS_SUCCESS);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_.data() + 2);
  EXPECT_EQ(run(a, workspace_.data()), CUBLAS_STATUS_INVALID_VALUE);

  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_BIAS);
  EXPECT_EQ(find(other), CUBLAS_STATUS_NOT_SUPPORTED);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB);
  setenv("LINEAR_DDP_FAKE_NO_EPILOGUES", "1", 1);
  EXPECT_EQ(find(other), CUBLAS_STATUS_NOT_SUPPORTED);
  unsetenv("LINEAR_DDP_FAKE_NO_EPILOGUES");
  EXPECT_EQ(find(other), CUBLAS_STATUS_SUCCESS);
  layout(b_, k + 1, n, CUBLASLT_ORDER_COL);
  EXPECT_EQ(find(other), CUBLAS_STATUS_INVALID_VALUE);
  layout(b_, k, n, CUBLASLT_ORDER_COL, k - 1);
  EXPECT_EQ(find(other), CUBLAS_STATUS_INVALID_VALUE);
  cublasLtMatrixLayout_t half = nullptr;
  EXPECT_EQ(cublasLtMatrixLayoutCreate(&half, CUDA_R_16F, m, n, m), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(CublasLt, EndsTheProcessWhereAGpuWouldSilentlyGoWrong) {
  cublasLtMatmulAlgo_t algorithm;
  ASSERT_EQ(find(algorithm), CUBLAS_STATUS_SUCCESS);
  const auto run = [&](const float* a) { multiply(algorithm, a, 0, out_.data(), workspace_.data()); };
  EXPECT_DEATH(run(host_a_.data()), "A is not inside one allocation");
  EXPECT_DEATH(run(in_a_.data() + ld * ld - 1), "A is not inside one allocation");
  EXPECT_DEATH(run(out_.data()), "D overlaps A or B");
  cublasLtMatmulDesc_t gone = nullptr;
  ASSERT_EQ(cublasLtMatmulDescCreate(&gone, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatmulDescDestroy(gone), CUBLAS_STATUS_SUCCESS);
  EXPECT_DEATH(cublasLtMatmulDescDestroy(gone), "product was destroyed");
}

}  // namespace
}  // namespace ddp
