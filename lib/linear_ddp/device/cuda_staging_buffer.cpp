#include <linear_ddp/device/cuda_staging_buffer.hpp>

#include <algorithm>

#include <linear_ddp/launch/watchdog.hpp>

namespace ddp {

CudaStagingBuffer::CudaStagingBuffer(cudaStream_t stream, std::size_t bytes, Watchdog* const& watchdog)
    : stream_(stream),
      bytes_(bytes),
      watchdog_(watchdog),
      host_(pinned_memory(std::max(bytes, std::size_t{1}))),
      device_(cuda_memory(bytes)),
      read_(make_cuda_event()) {}

void* CudaStagingBuffer::host() {
  const Watchdog::Watch watch(*watchdog_, "wait for an earlier copy to the GPU", 0);
  check(cudaEventSynchronize(read_.get()), "wait for an earlier copy to the GPU");  // never recorded: over
  return host_.get();
}

void CudaStagingBuffer::send() {
  if (bytes_ == 0) return;
  const Watchdog::Watch watch(*watchdog_, "copy to the GPU", bytes_);
  check(cudaMemcpyAsync(device_.get(), host_.get(), bytes_, cudaMemcpyHostToDevice, stream_),
        "queue a copy to the GPU");
  check(cudaEventRecord(read_.get(), stream_), "queue an event");
}

}  // namespace ddp
