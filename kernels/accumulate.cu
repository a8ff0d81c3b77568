#include "kernels/accumulate.hpp"

#include "kernels/launch.hpp"

namespace ddp::kernels {

__global__ void __launch_bounds__(1) accumulate_kernel(const float* value, double factor, double* sum) {
  *sum += factor * static_cast<double>(*value);
}

cudaError_t accumulate(const float* value, double factor, double* sum, cudaStream_t stream) {
  return launch<accumulate_kernel>(1, 1, 0, stream, value, factor, sum);
}

}  // namespace ddp::kernels
