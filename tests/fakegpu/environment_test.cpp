// What the stand-in for the CUDA runtime does at the environment's wish, and its report at exit.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "cuda_program.hpp"

namespace ddp::test {
namespace {

TEST(Exit, ReportsWhatWasNotGivenBack) {
  EXPECT_EXIT(run({}, [] { return device_array<float>(1) == nullptr ? 1 : 0; }), ExitedWithCode(0),
              "leak: 1 of kind memory");
  EXPECT_EXIT(run({}, [] { return static_cast<int>(cudaFree(device_array<float>(1))); }), ExitedWithCode(0), "^$");
}

TEST(Exit, WritesHowOftenEachFunctionWasCalled) {
  const std::string prefix = ::testing::TempDir() + "linear_ddp_fakegpu_calls";
  EXPECT_EXIT(run({{"LINEAR_DDP_FAKE_CALLS", prefix.c_str()}},
                  [] {
                    (void)device_array<float>(1);
                    (void)device_array<float>(1);
                    return 0;
                  }),
              ExitedWithCode(0), "");
  std::ifstream file(prefix + ".0");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "cudaMalloc 2\n");
  std::remove((prefix + ".0").c_str());
}

TEST(Faults, AreReturnedByTheNthCall) {
  EXPECT_EXIT(run({{"LINEAR_DDP_FAKE_FAIL", "0:cudaMalloc:2:2,1:cudaMalloc:1:2"}},
                  [] {
                    (void)device_array<float>(1);
                    void* memory = nullptr;
                    const bool failed = cudaMalloc(&memory, 4) == cudaErrorMemoryAllocation;
                    (void)device_array<float>(1);
                    return failed && cudaGetLastError() == cudaErrorMemoryAllocation ? 0 : 1;
                  }),
              ExitedWithCode(0), "call 2 of cudaMalloc: injected 2");
}

TEST(Faults, OfTheContextStay) {
  EXPECT_EXIT(run({{"LINEAR_DDP_FAKE_FAIL", "0:cudaStreamSynchronize:1:700"}},
                  [] {
                    const bool failed = cudaStreamSynchronize(make_stream()) == cudaErrorIllegalAddress;
                    void* memory = nullptr;
                    return failed && cudaMalloc(&memory, 4) == cudaErrorIllegalAddress ? 0 : 1;
                  }),
              ExitedWithCode(0), "");
}

TEST(Faults, MayBeAHang) {
  EXPECT_EXIT(run({{"LINEAR_DDP_FAKE_FAIL", "0:cudaMalloc:1:hang"}},
                  [] {
                    alarm(1);
                    return device_array<float>(1) == nullptr ? 1 : 0;
                  }),
              KilledBySignal(SIGALRM), "injected hang");
}

/// The number on the host is the last byte of the UUID.
int number_on_host(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal));
  return properties.uuid.bytes[15];
}

TEST(Devices, AreThoseThatAreVisible) {
  const auto count = [] {
    int devices = -1;
    return cudaGetDeviceCount(&devices) == (devices > 0 ? cudaSuccess : cudaErrorNoDevice) ? devices : 100;
  };
  EXPECT_EXIT(run({{"LINEAR_DDP_FAKE_GPUS", "3"}}, count), ExitedWithCode(3), "");
  EXPECT_EXIT(run({{"LINEAR_DDP_FAKE_GPUS", "3"}, {"CUDA_VISIBLE_DEVICES", ""}}, count), ExitedWithCode(0), "");
  EXPECT_EXIT(run({{"LINEAR_DDP_FAKE_GPUS", "3"}, {"CUDA_VISIBLE_DEVICES", "2,0,7,1"}}, count), ExitedWithCode(2), "");
  EXPECT_EXIT(run({{"LINEAR_DDP_FAKE_GPUS", "3"}, {"CUDA_VISIBLE_DEVICES", "2,0"}},
                  [] { return 10 * number_on_host(0) + number_on_host(1); }),
              ExitedWithCode(20), "");
}

}  // namespace
}  // namespace ddp::test

int main(int argc, char** argv) {
  return ddp::test::run_programs(argc, argv);
}
