#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include <linear_ddp/device/cuda_check.hpp>

namespace ddp {

template <auto release>
struct ReleaseCuda {
  template <class Object>
  void operator()(Object* object) const noexcept {
    release(object);  // an error here is an earlier one's echo, and nobody is left to tell
  }
};

/// Owns what a CUDA library calls a handle: a pointer to an object of its own.
template <class Handle, auto release>
using CudaHandle = std::unique_ptr<std::remove_pointer_t<Handle>, ReleaseCuda<release>>;

using CudaStream = CudaHandle<cudaStream_t, cudaStreamDestroy>;
using CudaEvent = CudaHandle<cudaEvent_t, cudaEventDestroy>;
using CudaMemory = CudaHandle<void*, cudaFree>;        ///< on the device
using NcclMemory = CudaHandle<void*, ncclMemFree>;     ///< on the device
using PinnedMemory = CudaHandle<void*, cudaFreeHost>;  ///< on the host

/// It only orders streams and is not timed, which would cost a write by the GPU.
[[nodiscard]] CudaEvent make_cuda_event();

/// Uninitialised; null when `bytes` is 0.
[[nodiscard]] CudaMemory cuda_memory(std::size_t bytes);
/// Of the kind that NCCL can register. Uninitialised.
[[nodiscard]] NcclMemory nccl_memory(std::size_t bytes);
/// Uninitialised.
[[nodiscard]] PinnedMemory pinned_memory(std::size_t bytes);

}  // namespace ddp
