#pragma once

// In place of kernels/launch.hpp where kernels are compiled for the host: `launch` is never called there, but each of
// its instances makes its kernel known.

#include <cstddef>
#include <utility>

#include "fakegpu.hpp"
#include "host_kernel.hpp"
#include "kernels/block.hpp"

namespace fakegpu {

template <class... Parameters, std::size_t... indices>
HostKernel host_kernel(void (*kernel)(Parameters...), std::index_sequence<indices...> /*of the parameters*/) {
  return {{sizeof(Parameters)...}, [kernel](void** arguments, dim3 grid, dim3 block) {
            run_blocks(grid, block, [&] { kernel(*static_cast<Parameters*>(arguments[indices])...); });
          }};
}

template <class... Parameters>
bool register_kernel(void (*kernel)(Parameters...)) {
  register_host_kernel(reinterpret_cast<const void*>(kernel),
                       host_kernel(kernel, std::index_sequence_for<Parameters...>{}));
  return true;
}

template <auto kernel>
inline const bool registered = register_kernel(kernel);

}  // namespace fakegpu

namespace ddp::kernels {

template <auto kernel, class... Arguments>
[[nodiscard]] cudaError_t launch(dim3, dim3, std::size_t, cudaStream_t, const Arguments&...) {
  (void)&fakegpu::registered<kernel>;
  fakegpu::die("the launch of the host's kernels is called");
}

}  // namespace ddp::kernels
