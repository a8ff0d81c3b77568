#include <linear_ddp/device/cuda_handle.hpp>

#include <fmt/format.h>

#include <string>

namespace ddp {

CudaEvent make_cuda_event() {
  cudaEvent_t raw = nullptr;
  check(cudaEventCreateWithFlags(&raw, cudaEventDisableTiming), "make a CUDA event");
  return CudaEvent(raw);
}

CudaMemory cuda_memory(std::size_t bytes) {
  void* raw = nullptr;
  const cudaError_t status = cudaMalloc(&raw, bytes);
  if (status != cudaSuccess) {
    std::size_t free_bytes = 0, total_bytes = 0;
    const bool known = cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess;
    const std::string room =
        known ? fmt::format(" ({} of {} MiB are free)", free_bytes >> 20U, total_bytes >> 20U) : "";
    fail_cuda(status, fmt::format("get {} bytes of GPU memory{}", bytes, room));
  }
  return CudaMemory(raw);
}

NcclMemory nccl_memory(std::size_t bytes) {
  void* raw = nullptr;
  if (ncclMemAlloc(&raw, bytes) != ncclSuccess) {
    (void)cudaGetLastError();  // or a later call would report it
    return nullptr;
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
