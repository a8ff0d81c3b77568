#include "linear_ddp/device/cpu_passes.hpp"

#include "kernels/activation.hpp"
#include "kernels/multiversion.hpp"

namespace ddp::passes {
namespace {

template <class Function>
[[gnu::always_inline]] inline void values(Function function, std::int64_t numel, const float* z, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < numel; ++i) y[i] = function.value(z[i]);
}
template <class Function>
[[gnu::always_inline]] inline void gradients(Function function, std::int64_t numel, const float* kept,
                                             float* gradient) {
#pragma omp simd
  for (std::int64_t i = 0; i < numel; ++i) gradient[i] *= function.gradient(kept[i]);
}

}  // namespace

DDP_MULTIVERSION void fill_rows(std::int64_t rows, std::int64_t out, const float* row, float* y) {
  for (std::int64_t i = 0; i < rows; ++i, y += out) {
    for (std::int64_t j = 0; j < out; ++j) y[j] = row[j];
  }
}

DDP_MULTIVERSION void add_columns(std::int64_t rows, std::int64_t out, const float* y, double* sums) {
  for (std::int64_t i = 0; i < rows; ++i, y += out) {
#pragma omp simd
    for (std::int64_t j = 0; j < out; ++j) sums[j] += static_cast<double>(y[j]);
  }
}

DDP_MULTIVERSION void activate(Activation activation, std::int64_t numel, const float* z, float* y) {
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return values(kernels::Relu{}, numel, z, y);
    case Activation::tanh:
      return values(kernels::Tanh{}, numel, z, y);
    case Activation::gelu:
      return values(kernels::Gelu{}, numel, z, y);
  }
}

DDP_MULTIVERSION void through_activation(Activation activation, std::int64_t numel, const float* kept,
                                         float* gradient) {
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return gradients(kernels::Relu{}, numel, kept, gradient);
    case Activation::tanh:
      return gradients(kernels::Tanh{}, numel, kept, gradient);
    case Activation::gelu:
      return gradients(kernels::Gelu{}, numel, kept, gradient);
  }
}

}  // namespace ddp::passes
