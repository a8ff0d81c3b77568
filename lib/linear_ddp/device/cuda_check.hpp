#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <source_location>
#include <string>

namespace ddp {

/// Throws Error: what was attempted, the library's name and text of `status`, and what to try.
[[noreturn]] void fail_cuda(cudaError_t status, const std::string& attempt,
                            std::source_location where = std::source_location::current());
[[noreturn]] void fail_cuda(cublasStatus_t status, const std::string& attempt,
                            std::source_location where = std::source_location::current());

/// Throws when `status` is not success. Attempt: "queue an event". (A text that needs the shapes is made only for
/// fail_cuda.)
inline void check(cudaError_t status, const char* attempt,
                  std::source_location where = std::source_location::current()) {
  if (status != cudaSuccess) fail_cuda(status, attempt, where);
}
inline void check(cublasStatus_t status, const char* attempt,
                  std::source_location where = std::source_location::current()) {
  if (status != CUBLAS_STATUS_SUCCESS) fail_cuda(status, attempt, where);
}

}  // namespace ddp
