#pragma once

#include <linear_ddp/device/cuda_handle.hpp>
#include <linear_ddp/device/device.hpp>

namespace ddp {

/// Pinned memory, which the GPU copies from at the full speed of its link while the host goes on.
class CudaStagingBuffer final : public StagingBuffer {
 public:
  /// Copies go by `stream`. `watchdog` is the device's, who may come to another one.
  CudaStagingBuffer(cudaStream_t stream, std::size_t bytes, Watchdog* const& watchdog);

  [[nodiscard]] void* host() override;
  void send() override;
  [[nodiscard]] const void* device() const noexcept override { return device_.get(); }

 private:
  cudaStream_t stream_;
  std::size_t bytes_;
  Watchdog* const& watchdog_;
  PinnedMemory host_;
  CudaMemory device_;
  CudaEvent read_;
};

}  // namespace ddp
