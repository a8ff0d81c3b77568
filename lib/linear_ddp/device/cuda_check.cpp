#include <linear_ddp/device/cuda_check.hpp>

#include <fmt/format.h>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

const char* remedy_of(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "use a smaller batch or more GPUs, look for other programs on this GPU (nvidia-smi), or --device cpu";
    case cudaErrorInsufficientDriver:
      return "update the NVIDIA driver, or --device cpu";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return "this build has no code for this GPU: configure with -DCMAKE_CUDA_ARCHITECTURES=native, or --device cpu";
    case cudaErrorDevicesUnavailable:
      return "another program holds this GPU in exclusive mode (nvidia-smi -q -d COMPUTE)";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
      return "an earlier operation went wrong on the GPU: run under compute-sanitizer, or with CUDA_LAUNCH_BLOCKING=1";
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
      return "the GPU is broken or must be reset: take this node out (dmesg has the Xid)";
    default:
      return "see dmesg for an Xid of the driver, and nvidia-smi for the GPU's state";
  }
}

}  // namespace

void fail_cuda(cudaError_t status, const std::string& attempt, std::source_location where) {
  (void)cudaGetLastError();  // one that is over (no memory) would be reported again by a later, innocent call
  fail(attempt, fmt::format("{}: {}", cudaGetErrorName(status), cudaGetErrorString(status)), remedy_of(status), where);
}

void fail_cuda(cublasStatus_t status, const std::string& attempt, std::source_location where) {
  std::string cause = fmt::format("{}: {}", cublasLtGetStatusName(status), cublasLtGetStatusString(status));
  if (const cudaError_t beneath = cudaGetLastError(); beneath != cudaSuccess) {
    cause += fmt::format(" ({}: {})", cudaGetErrorName(beneath), cudaGetErrorString(beneath));
  }
  fail(attempt, cause, "CUBLASLT_LOG_LEVEL=2 in the environment makes cuBLASLt tell more", where);
}

}  // namespace ddp
