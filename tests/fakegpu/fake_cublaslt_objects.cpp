// Stand-in for libcublasLt.so.13: its objects and their attributes.
#include <cstdio>
#include <cstring>

#include "fake_cublaslt.hpp"

namespace fakegpu {

cublasStatus_t refuse(cublasStatus_t status, const std::string& why) {
  std::fprintf(stderr, "stand-in cuBLASLt: %s\n", why.c_str());
  return status;
}

namespace {

template <class T>
cublasStatus_t assign(T& attribute, const void* value, std::size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return refuse(CUBLAS_STATUS_INVALID_VALUE, "attribute of another size");
  std::memcpy(&attribute, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Registry, class Handle, class Object>
cublasStatus_t create(Registry& registry, Handle* handle, const Object& object) {
  if (handle == nullptr) return refuse(CUBLAS_STATUS_INVALID_VALUE, "nowhere to put a new object");
  *handle = registry.add(std::make_shared<Object>(object));
  return CUBLAS_STATUS_SUCCESS;
}

template <class Registry, class Handle>
cublasStatus_t destroy(Registry& registry, Handle handle, const char* call) {
  registry.take(handle, call);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

std::size_t cublasLtGetVersion() {
  return CUBLAS_VERSION;
}

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_UNKNOWN";
  }
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "refused by the stand-in of cuBLASLt, or a fault asked for";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  FAIL_IF_ASKED_TO;
  return create(handles(), handle, 0);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  FAIL_IF_ASKED_TO;
  return destroy(handles(), handle, __func__);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  FAIL_IF_ASKED_TO;
  if ((compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) || scale != CUDA_R_32F) {
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "only products in float32 are modelled");
  }
  return create(products(), product, Product{});
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  FAIL_IF_ASKED_TO;
  return destroy(products(), product, __func__);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  FAIL_IF_ASKED_TO;
  const auto product = products().get(handle, __func__);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return assign(product->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return assign(product->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return assign(product->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return assign(product->bias, value, bytes);
    default:
      return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "this attribute of a product is not modelled");
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t ld) {
  FAIL_IF_ASKED_TO;
  if (type != CUDA_R_32F) return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "only matrices of float32 are modelled");
  return create(layouts(), layout, Layout{.rows = rows, .columns = columns, .ld = ld});
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  FAIL_IF_ASKED_TO;
  return destroy(layouts(), layout, __func__);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  FAIL_IF_ASKED_TO;
  const auto layout = layouts().get(handle, __func__);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_ORDER) return assign(layout->order, value, bytes);
  return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "this attribute of a layout is not modelled");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  FAIL_IF_ASKED_TO;
  return create(preferences(), preference, Preference{});
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  FAIL_IF_ASKED_TO;
  return destroy(preferences(), preference, __func__);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  FAIL_IF_ASKED_TO;
  const auto preference = preferences().get(handle, __func__);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return assign(preference->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return assign(preference->align_a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return assign(preference->align_b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return assign(preference->align_c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return assign(preference->align_d, value, bytes);
    default:
      return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "this attribute of a preference is not modelled");
  }
}

}  // extern "C"
