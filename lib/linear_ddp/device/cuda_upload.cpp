#include <linear_ddp/device/cuda_upload.hpp>

#include <algorithm>
#include <cstring>

namespace ddp {

CudaUpload::CudaUpload(cudaStream_t stream) : stream_(stream), memory_(pinned_memory(pieces * piece_bytes)) {
  for (CudaEvent& event : copied_) event = make_cuda_event();
}

void CudaUpload::copy(void* target, const void* source, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes; done += piece_bytes) {
    const std::size_t size = std::min(piece_bytes, bytes - done);
    std::byte* piece = static_cast<std::byte*>(memory_.get()) + next_ * piece_bytes;
    cudaEvent_t copied = copied_[next_].get();
    next_ = (next_ + 1) % pieces;
    check(cudaEventSynchronize(copied), "wait for an earlier copy to the GPU");  // one never recorded counts as over
    std::memcpy(piece, static_cast<const std::byte*>(source) + done, size);
    check(cudaMemcpyAsync(static_cast<std::byte*>(target) + done, piece, size, cudaMemcpyHostToDevice, stream_),
          "queue a copy to the GPU");
    check(cudaEventRecord(copied, stream_), "queue an event");
  }
}

}  // namespace ddp
