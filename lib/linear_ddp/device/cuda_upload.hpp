#pragma once

#include <array>
#include <cstddef>

#include <linear_ddp/device/cuda_handle.hpp>

namespace ddp {

/// Copies from ordinary host memory that the caller may change at once: by way of a ring of pinned pieces, so that the
/// host waits for the GPU only when it is a whole ring ahead. (cudaMemcpyAsync promises less: whether it has read
/// pageable memory when it returns depends on the system.)
class CudaUpload {
 public:
  explicit CudaUpload(cudaStream_t stream);

  /// Queued.
  void copy(void* target, const void* source, std::size_t bytes);

 private:
  static constexpr std::size_t pieces = 8;  // some steps of small batches
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20;

  cudaStream_t stream_;
  PinnedMemory memory_;
  std::array<CudaEvent, pieces> copied_;  // of each piece: the last copy out of it is done
  std::size_t next_ = 0;
};

}  // namespace ddp
