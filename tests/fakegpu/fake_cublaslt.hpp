#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "handles.hpp"

namespace fakegpu {

struct Product {
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float* bias = nullptr;  ///< read by BIAS, written by BGRADA and BGRADB
};

struct Layout {
  std::uint64_t rows, columns;
  std::int64_t ld;
  cublasLtOrder_t order = CUBLASLT_ORDER_COL;
};

struct Preference {
  std::size_t workspace = 0;
  std::uint32_t align_a = 256, align_b = 256, align_c = 256, align_d = 256;  // the real library's defaults
};

template <class Handle, class Object>
Handles<Handle, Object>& objects(const char* kind) {
  static auto& all = *new Handles<Handle, Object>(kind);  // lives on at exit, when the program's last objects go
  return all;
}
inline auto& handles() {
  return objects<cublasLtHandle_t, int>("cuBLASLt handle");
}
inline auto& products() {
  return objects<cublasLtMatmulDesc_t, Product>("cuBLASLt product");
}
inline auto& layouts() {
  return objects<cublasLtMatrixLayout_t, Layout>("cuBLASLt layout");
}
inline auto& preferences() {
  return objects<cublasLtMatmulPreference_t, Preference>("cuBLASLt preference");
}

/// Returns `status`, and says why on stderr: the status alone would help nobody.
cublasStatus_t refuse(cublasStatus_t status, const std::string& why);

}  // namespace fakegpu

#define FAIL_IF_ASKED_TO \
  if (const int error = fakegpu::fault(__func__); error != 0) return static_cast<cublasStatus_t>(error)
