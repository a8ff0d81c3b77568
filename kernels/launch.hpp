#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

namespace ddp::kernels {
namespace detail {

// The parameters are deduced from the kernel alone, so that an argument of another type is converted, and not passed as
// the bytes it happens to have. (common_type is C++17's type_identity.)
template <class... Parameters>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                   const std::common_type_t<Parameters>&... arguments) {
  void* addresses[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, addresses, shared_bytes, stream);
}

}  // namespace detail

/// Queues a kernel; the only way in which kernels are launched here. Without nvcc's <<<>>> a .cu file is also plain
/// C++, which a machine with no GPU can compile against a `launch` of its own.
template <auto kernel, class... Arguments>
[[nodiscard]] cudaError_t launch(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                                 const Arguments&... arguments) {
  return detail::launch(kernel, grid, block, shared_bytes, stream, arguments...);
}

}  // namespace ddp::kernels
