#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace fakegpu {

/// A kernel that was compiled for the host.
struct HostKernel {
  std::vector<std::size_t> sizes;  ///< of its parameters, in bytes
  std::function<void(void** arguments, dim3 grid, dim3 block)> run;
};

/// Called by libhostkernels.so as it is loaded.
void register_host_kernel(const void* function, const HostKernel& kernel);

}  // namespace fakegpu
