#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <new>

#include "kernels/accumulate.hpp"

/// Small CUDA programs. Each runs in a process of its own, since the stand-ins read the environment once; gtest starts
/// it anew, so that it inherits no threads either.
namespace ddp::test {

using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;

inline void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::cerr << cudaGetErrorName(status) << std::endl;
  std::exit(100);
}

template <class T>
T* device_array(std::size_t numel) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, numel * sizeof(T)));
  return static_cast<T*>(memory);
}

template <class T>
T* pinned(T value) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, sizeof(T)));
  return new (memory) T(value);
}

inline cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
  return stream;
}

inline cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

/// `to` waits for what `from` was given.
inline void order(cudaStream_t from, cudaStream_t to) {
  cudaEvent_t event = make_event();
  check(cudaEventRecord(event, from));
  check(cudaStreamWaitEvent(to, event, 0));
}

/// So many kernels take 50 ms with delays: longer than a busy machine keeps the host from its next calls.
inline constexpr int many = 200;

/// A stream, and a number that its kernels count up.
struct Counter {
  cudaStream_t stream = make_stream();
  double* sum = device_array<double>(1);
  float* one = device_array<float>(1);

  Counter() {
    check(cudaMemcpyAsync(one, pinned(1.0F), sizeof(float), cudaMemcpyHostToDevice, stream));
    check(cudaMemsetAsync(sum, 0, sizeof(double), stream));
  }
  void add(int times, cudaStream_t on) {
    for (int i = 0; i < times; ++i) check(kernels::accumulate(one, 1, 1, sum, on));
  }
  int value() {
    double result = -1;
    check(cudaMemcpyAsync(&result, sum, sizeof result, cudaMemcpyDeviceToHost, stream));
    check(cudaStreamSynchronize(stream));
    return static_cast<int>(result);
  }
};

struct Variable {
  const char *name, *value;
};

template <class Program>
[[noreturn]] void run(std::initializer_list<Variable> environment, const Program& program) {
  for (const auto& [name, value] : environment) setenv(name, value, 1);
  std::exit(program());
}

inline constexpr Variable delays{"LINEAR_DDP_FAKE_DELAYS", "1"};

/// main of a test of such programs.
inline int run_programs(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  return RUN_ALL_TESTS();
}

}  // namespace ddp::test
