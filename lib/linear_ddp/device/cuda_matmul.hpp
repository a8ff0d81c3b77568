#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include <linear_ddp/device/cuda_handle.hpp>

namespace ddp {

/// The three matrix products of a linear layer, by cuBLASLt in true float32 (no TF32), with a plan for each shape that
/// is made when it is first met and kept. Sizes are not zero; all pointers are memory of the current device.
class CudaMatmul {
 public:
  explicit CudaMatmul(cudaStream_t stream);

  /// From now on plans are made for operands of any alignment: the bits of a product depend on its shape alone.
  void ignore_alignment() noexcept { finest_ = sizeof(float); }

  /// y[rows, out] = x[rows, in] · weight[out, in]ᵀ + bias[out]; bias may be null. With `relu` negative ones become 0,
  /// where cuBLASLt does so in the product: false where it does not. Queued.
  bool forward(std::int64_t rows, std::int64_t in, std::int64_t out, const float* x, const float* weight,
               const float* bias, float* y, bool relu = false);

  /// dx[rows, in] = dy[rows, out] · weight[out, in]. Queued.
  void input_gradient(std::int64_t rows, std::int64_t in, std::int64_t out, const float* dy, const float* weight,
                      float* dx);

  /// weight_gradient[out, in] = dy[rows, out]ᵀ · x[rows, in]; bias_gradient[out] = the sums of dy's columns, unless
  /// null. With `add` both are added to. Queued.
  void gradient(std::int64_t rows, std::int64_t in, std::int64_t out, const float* x, const float* dy, bool add,
                float* weight_gradient, float* bias_gradient);

 private:
  enum class Product { forward, input_gradient, gradient };
  struct Key {
    Product product;
    cublasLtEpilogue_t epilogue;  // wanted: with the bias, or its gradient
    std::int64_t rows, in, out;
    std::uint32_t align_a, align_b, align_d;  // bytes
    auto operator<=>(const Key&) const = default;
  };
  struct Plan {
    CudaHandle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> product;
    CudaHandle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> a, b, d;
    cublasLtMatmulAlgo_t algorithm{};
    bool epilogue = false;  // whether cuBLASLt has it for this shape
  };

  [[nodiscard]] std::uint32_t alignment(const void* pointer) const noexcept;
  static std::string text_of(const Key& key);
  const Plan& plan_of(const Key& key, const float* bias);
  Plan make_plan(const Key& key, const float* bias) const;
  bool find_algorithm(const Key& key, Plan& plan, cublasLtEpilogue_t epilogue) const;
  void multiply(const Key& key, const Plan& plan, const float* a, const float* b, float beta, float* d);

  cudaStream_t stream_;
  CudaHandle<cublasLtHandle_t, cublasLtDestroy> handle_;
  CudaMemory workspace_, column_partials_;
  std::map<Key, Plan> plans_;
  std::uint32_t finest_ = 16;  // alignment that plans are told of
};

}  // namespace ddp
