#include <linear_ddp/device/cuda_handle.hpp>

#include <fmt/format.h>

#include <string>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

std::string free_room() {
  std::size_t free_bytes = 0, total_bytes = 0;
  if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return {};
  return fmt::format(" ({} of {} MiB are free)", free_bytes >> 20U, total_bytes >> 20U);
}

}  // namespace

CudaEvent make_cuda_event() {
  cudaEvent_t raw = nullptr;
  check(cudaEventCreateWithFlags(&raw, cudaEventDisableTiming), "make a CUDA event");
  return CudaEvent(raw);
}

CudaMemory cuda_memory(std::size_t bytes) {
  void* raw = nullptr;
  const cudaError_t status = cudaMalloc(&raw, bytes);
  if (status != cudaSuccess) fail_cuda(status, fmt::format("get {} bytes of GPU memory{}", bytes, free_room()));
  return CudaMemory(raw);
}

NcclMemory nccl_memory(std::size_t bytes) {
  void* raw = nullptr;
  if (const ncclResult_t status = ncclMemAlloc(&raw, bytes); status != ncclSuccess) {
    (void)cudaGetLastError();  // or a later, innocent call would report it
    fail(fmt::format("get {} bytes of GPU memory from NCCL{}", bytes, free_room()),
         fmt::format("{}: {}", ncclGetErrorString(status), ncclGetLastError(nullptr)),
         "NCCL_CUMEM_ENABLE=0 in the environment makes NCCL use plain memory; NCCL_DEBUG=INFO makes it tell more");
  }
  return NcclMemory(raw);
}

PinnedMemory pinned_memory(std::size_t bytes) {
  void* raw = nullptr;
  if (const cudaError_t status = cudaMallocHost(&raw, bytes); status != cudaSuccess) {
    fail_cuda(status, fmt::format("get {} bytes of pinned host memory", bytes));
  }
  return PinnedMemory(raw);
}

}  // namespace ddp
