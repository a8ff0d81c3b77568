#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/mpi_test_world.hpp"

namespace ddp::test {

using Floats = std::vector<float>;

/// A stream on the rank's own device; a constructor, since fixtures have device memory as members.
class OnStream : public ::testing::Test {
 protected:
  OnStream() {
    int devices = 1;
    EXPECT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(world().rank() % devices), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0), cudaSuccess);
  }
  ~OnStream() override { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }

  cudaStream_t stream_ = nullptr;
};

/// Device memory that begins with these values.
class DeviceFloats {
 public:
  DeviceFloats(const Floats& values, cudaStream_t stream) : stream_(stream), size_(values.size()) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), size_ * sizeof(float)), cudaSuccess);
    copy(data_, values.data(), cudaMemcpyHostToDevice);
  }
  ~DeviceFloats() { cudaFree(data_); }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;

  float* data() { return data_; }
  /// When the stream has done all that was queued.
  [[nodiscard]] Floats values() const {
    Floats values(size_);
    copy(values.data(), data_, cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  void copy(void* to, const void* from, cudaMemcpyKind kind) const {
    EXPECT_EQ(cudaMemcpyAsync(to, from, size_ * sizeof(float), kind, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }

  cudaStream_t stream_;
  std::size_t size_;
  float* data_ = nullptr;
};

}  // namespace ddp::test
