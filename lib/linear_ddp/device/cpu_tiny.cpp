#include "linear_ddp/device/cpu_tiny.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/loss.hpp"
#include "kernels/multiversion.hpp"

namespace ddp::tiny {
namespace {

// Compilers unroll loops over so few outputs into scalars, unless told that they are vectors.
constexpr std::size_t lanes = 8;
using Floats [[gnu::vector_size(lanes * sizeof(float))]] = float;
using Doubles [[gnu::vector_size(lanes * sizeof(double))]] = double;

[[gnu::always_inline]] inline void load(Floats& vector, const float* from) {
  std::memcpy(&vector, from, sizeof vector);
}
[[gnu::always_inline]] inline void store(float* to, const Floats& vector) {
  std::memcpy(to, &vector, sizeof vector);
}

/// Outputs are padded with zeros to whole vectors. Weights and their gradient are held transposed: [in, width].
template <std::size_t vectors>
[[gnu::always_inline]] inline double step(const LinearLoss& op) {
  constexpr std::size_t width = vectors * lanes;
  const kernels::MseLoss mse;
  const auto rows = static_cast<std::size_t>(op.rows), in = static_cast<std::size_t>(op.in),
             out = static_cast<std::size_t>(op.out);
  alignas(64) float weight[most * width], weight_gradient[most * width];
  alignas(64) float bias[width] = {}, bias_gradient[width] = {}, target[width] = {};
  std::fill_n(weight_gradient, in * width, 0.0F);
  std::fill_n(weight, in * width, 0.0F);
  for (std::size_t o = 0; o < out; ++o) {
    for (std::size_t i = 0; i < in; ++i) weight[i * width + o] = op.weight[o * in + i];
    if (op.bias != nullptr) bias[o] = op.bias[o];
  }

  Doubles sums{};
  for (std::size_t row = 0; row < rows; ++row) {
    const float* x = op.x + row * in;
    for (std::size_t o = 0; o < out; ++o) target[o] = op.target[row * out + o];
    Floats y[vectors], other;
    for (std::size_t v = 0; v < vectors; ++v) load(y[v], bias + v * lanes);
    for (std::size_t i = 0; i < in; ++i) {
      for (std::size_t v = 0; v < vectors; ++v) {
        load(other, weight + i * width + v * lanes);
        y[v] += x[i] * other;
      }
    }
    // The padding's outputs and targets are zero, and so are its losses and gradients.
    for (std::size_t v = 0; v < vectors; ++v) {
      load(other, target + v * lanes);
      sums += __builtin_convertvector(mse.value(y[v], other), Doubles);
      y[v] = op.loss_scale * mse.gradient(y[v], other);
      load(other, bias_gradient + v * lanes);
      store(bias_gradient + v * lanes, other + y[v]);
    }
    for (std::size_t i = 0; i < in; ++i) {
      for (std::size_t v = 0; v < vectors; ++v) {
        load(other, weight_gradient + i * width + v * lanes);
        store(weight_gradient + i * width + v * lanes, other + x[i] * y[v]);
      }
    }
  }

  for (std::size_t o = 0; o < out; ++o) {
    for (std::size_t i = 0; i < in; ++i) op.weight_gradient[o * in + i] = weight_gradient[i * width + o];
    if (op.bias_gradient != nullptr) op.bias_gradient[o] = bias_gradient[o];
  }
  double sum = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) sum += sums[lane];
  return sum;
}

}  // namespace

DDP_MULTIVERSION double mse_step(const LinearLoss& op) {
  return op.out <= static_cast<std::int64_t>(lanes) ? step<1>(op) : step<2>(op);
}

}  // namespace ddp::tiny
