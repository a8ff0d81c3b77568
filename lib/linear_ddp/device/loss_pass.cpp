#include "linear_ddp/device/loss_pass.hpp"

#include "kernels/loss.hpp"
#include "kernels/multiversion.hpp"

namespace ddp {

DDP_MULTIVERSION double mse_pass(std::int64_t rows, std::int64_t out, const float* bias, const float* target,
                                 float scale, float* y, float* bias_gradient) {
  const kernels::MseLoss loss;
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row, y += out, target += out) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < out; ++j) {
      const float output = bias == nullptr ? y[j] : y[j] + bias[j];
      sum += static_cast<double>(loss.value(output, target[j]));
      y[j] = scale * loss.gradient(output, target[j]);
      if (bias_gradient != nullptr) bias_gradient[j] += y[j];
    }
  }
  return sum;
}

}  // namespace ddp
