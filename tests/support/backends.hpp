#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/device/select.hpp>
#include "support/mpi_test_world.hpp"

namespace ddp::test {

enum class Backend { cpu, gpu };
inline void PrintTo(Backend backend, std::ostream* out) {
  *out << (backend == Backend::cpu ? "cpu" : "gpu");
}

/// Collective. This rank's device as the program would choose it; none, and why, when the ranks cannot have a GPU each.
inline SelectedDevice device_for(Backend backend) {
  try {
    return select_device(world(), backend == Backend::cpu ? DeviceRequest::cpu : DeviceRequest::cuda);
  } catch (const AgreedError& refusal) {
    if (refusal.status() != Status::wrong_use) throw;
    return {nullptr, refusal.what()};
  }
}

/// A fixture for suites that hold for every device. On a machine without (enough) GPUs the GPU's instances are skipped.
class DeviceSuite : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    auto [device, reason] = device_for(GetParam());
    if (!device) GTEST_SKIP() << reason;
    device_ = std::move(device);
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
