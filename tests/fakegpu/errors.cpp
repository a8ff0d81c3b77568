#include <atomic>

#include "runtime.hpp"

namespace fakegpu {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> context_error = cudaSuccess;

struct Name {
  cudaError_t status;
  const char *name, *text;
};

// In the words of CUDA 13's own library.
constexpr Name names[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable", "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const Name& name_of(cudaError_t status) {
  for (const Name& name : names) {
    if (name.status == status) return name;
  }
  static constexpr Name unnamed{cudaErrorUnknown, "unrecognized error code", "unrecognized error code"};
  return unnamed;
}

bool ends_context(cudaError_t status) {
  return status == cudaErrorIllegalAddress || status == cudaErrorLaunchFailure || status == cudaErrorECCUncorrectable ||
         status == cudaErrorUnknown;
}

}  // namespace

cudaError_t remember(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  if (ends_context(status)) context_error = status;
  return status;
}

cudaError_t lost_context() {
  return context_error;
}

}  // namespace fakegpu

extern "C" {

cudaError_t cudaPeekAtLastError() {
  (void)fakegpu::fault(__func__);
  return fakegpu::last_error;
}

cudaError_t cudaGetLastError() {
  (void)fakegpu::fault(__func__);
  const cudaError_t status = fakegpu::last_error;
  fakegpu::last_error = fakegpu::lost_context();
  return status;
}

const char* cudaGetErrorName(cudaError_t status) {
  (void)fakegpu::fault(__func__);
  return fakegpu::name_of(status).name;
}

const char* cudaGetErrorString(cudaError_t status) {
  (void)fakegpu::fault(__func__);
  return fakegpu::name_of(status).text;
}
}
