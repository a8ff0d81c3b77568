#include "linear_ddp/device/cpu_passes.hpp"

#include <cmath>

#include "kernels/activation.hpp"
#include "kernels/half.hpp"
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

template <class Half>
[[gnu::always_inline]] inline void narrow(const float* values, std::int64_t numel, std::uint16_t* result) {
#pragma omp simd
  for (std::int64_t i = 0; i < numel; ++i) result[i] = Half::from_float(values[i]);
}
template <class Half>
[[gnu::always_inline]] inline void widen(const std::uint16_t* values, std::int64_t numel, float* result) {
#pragma omp simd
  for (std::int64_t i = 0; i < numel; ++i) result[i] = Half::to_float(values[i]);
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

DDP_MULTIVERSION void add(const float* values, std::int64_t numel, float factor, float* sums) {
#pragma omp simd
  for (std::int64_t i = 0; i < numel; ++i) sums[i] += factor * values[i];
}

DDP_MULTIVERSION void scale(const float* values, std::int64_t numel, float factor, float* result) {
#pragma omp simd
  for (std::int64_t i = 0; i < numel; ++i) result[i] = factor * values[i];
}

/// By Gram and Schmidt, twice over, with sums in float64.
void orthonormalize(std::int64_t rows, std::int64_t columns, float* values) {
  const auto dot = [&](const float* a, const float* b) {
    double sum = 0;
    for (std::int64_t at = 0; at < rows * columns; at += columns) {
      sum += static_cast<double>(a[at]) * static_cast<double>(b[at]);
    }
    return sum;
  };
  for (float* own = values; own != values + columns; ++own) {
    const double before = dot(own, own);
    for (int times = 0; times < 2; ++times) {
      for (const float* other = values; other != own; ++other) {
        const double part = dot(own, other);
        for (std::int64_t at = 0; at < rows * columns; at += columns) {
          own[at] = static_cast<float>(static_cast<double>(own[at]) - part * static_cast<double>(other[at]));
        }
      }
    }
    const double square = dot(own, own), factor = square > 1e-12 * before ? 1 / std::sqrt(square) : 0;
    for (std::int64_t at = 0; at < rows * columns; at += columns) {
      own[at] = static_cast<float>(static_cast<double>(own[at]) * factor);
    }
  }
}

DDP_MULTIVERSION void to_half(HalfType type, const float* values, std::int64_t numel, std::uint16_t* result) {
  type == HalfType::fp16 ? narrow<kernels::Fp16>(values, numel, result) : narrow<kernels::Bf16>(values, numel, result);
}

DDP_MULTIVERSION void from_half(HalfType type, const std::uint16_t* values, std::int64_t numel, float* result) {
  type == HalfType::fp16 ? widen<kernels::Fp16>(values, numel, result) : widen<kernels::Bf16>(values, numel, result);
}

}  // namespace ddp::passes
