#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include <linear_ddp/device/device.hpp>
#include "support/mpi_test_world.hpp"

namespace ddp::test {

enum class Backend { cpu, gpu };
inline void PrintTo(Backend backend, std::ostream* out) {
  *out << (backend == Backend::cpu ? "cpu" : "gpu");
}

/// Why the ranks of this host cannot have a GPU each; empty when they can.
inline std::string why_no_gpus() {
  const CudaVisibility visible = visible_cuda_devices();
  const int needed = world().local_size();
  if (visible.gpus.empty()) return "needs a GPU: " + visible.why_none;
  if (std::cmp_less(visible.gpus.size(), needed)) {
    return "needs " + std::to_string(needed) + " GPUs, one a rank; sees " + std::to_string(visible.gpus.size());
  }
  return {};
}

/// A fixture for suites that hold for every device. On a machine without (enough) GPUs the GPU's instances are skipped.
class DeviceSuite : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (GetParam() == Backend::cpu) {
      device_ = make_cpu_device();
      return;
    }
    if (const std::string why = why_no_gpus(); !why.empty()) GTEST_SKIP() << why;
    device_ = make_cuda_device(world().local_rank());
  }

  Device& device() { return *device_; }

 private:
  std::unique_ptr<Device> device_;
};

/// CTest tells the instances apart by these names.
#define DDP_INSTANTIATE_FOR_BACKENDS(suite)                                           \
  INSTANTIATE_TEST_SUITE_P(Cpu, suite, ::testing::Values(::ddp::test::Backend::cpu)); \
  INSTANTIATE_TEST_SUITE_P(Gpu, suite, ::testing::Values(::ddp::test::Backend::gpu))

}  // namespace ddp::test
