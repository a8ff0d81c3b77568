#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/mpi_test_world.hpp"

namespace ddp::test {

using Floats = std::vector<float>;

/// Device memory that begins with these values.
class DeviceFloats {
 public:
  explicit DeviceFloats(const Floats& values) : size_(values.size()) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), size_ * sizeof(float)), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(data_, values.data(), size_ * sizeof(float), cudaMemcpyHostToDevice, nullptr),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  }
  ~DeviceFloats() { cudaFree(data_); }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;

  float* data() { return data_; }
  [[nodiscard]] Floats values(cudaStream_t stream) const {
    Floats values(size_);
    EXPECT_EQ(cudaMemcpyAsync(values.data(), data_, size_ * sizeof(float), cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    return values;
  }

 private:
  std::size_t size_;
  float* data_ = nullptr;
};

class OnStream : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(world().rank() % devices), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0), cudaSuccess);
  }
  void TearDown() override { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }

  cudaStream_t stream_ = nullptr;
};

}  // namespace ddp::test
