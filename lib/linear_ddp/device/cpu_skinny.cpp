#include "linear_ddp/device/cpu_skinny.hpp"

#include <cstring>

#include "kernels/multiversion.hpp"

namespace ddp::skinny {
namespace {

constexpr std::size_t lanes = 16;
using Floats [[gnu::vector_size(lanes * sizeof(float))]] = float;
using Half [[gnu::vector_size(lanes / 2 * sizeof(float))]] = float;
using Quarter [[gnu::vector_size(lanes / 4 * sizeof(float))]] = float;

[[gnu::always_inline]] inline Floats load(const float* from) {
  Floats vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}
[[gnu::always_inline]] inline void store(float* to, const Floats& vector) {
  std::memcpy(to, &vector, sizeof vector);
}

[[gnu::always_inline]] inline float sum_of(const Floats& vector) {
  Half halves[2];
  std::memcpy(halves, &vector, sizeof vector);
  Quarter quarters[2];
  halves[0] += halves[1];
  std::memcpy(quarters, halves, sizeof halves[0]);
  quarters[0] += quarters[1];
  return (quarters[0][0] + quarters[0][2]) + (quarters[0][1] + quarters[0][3]);
}

/// Vectors of inputs that are worked on at once: enough sums that no addition waits for the one before it. Row after
/// row, so that memory is read in one stream, which is brought in ahead.
constexpr std::size_t vectors_at_once(std::size_t out) {
  return out == 1 ? 8 : out == 2 ? 4 : out <= 4 ? 2 : 1;
}

template <std::size_t out>
[[gnu::always_inline]] inline void forward(std::size_t rows, std::size_t in, const float* x, const float* weight,
                                           const float* bias, float* y) {
  constexpr std::size_t vectors = vectors_at_once(out);
  for (std::size_t row = 0; row < rows; ++row, x += in, y += out) {
    Floats sums[out][vectors];
    for (auto& of_output : sums) {  // = {} would be a loop in memory
      for (Floats& sum : of_output) sum = Floats{};
    }
    std::size_t i = 0;
    for (; i + vectors * lanes <= in; i += vectors * lanes) {
      for (std::size_t v = 0; v < vectors; ++v) {
        const Floats values = load(x + i + v * lanes);
        for (std::size_t o = 0; o < out; ++o) sums[o][v] += values * load(weight + o * in + i + v * lanes);
      }
    }
    for (; i + lanes <= in; i += lanes) {
      const Floats values = load(x + i);
      for (std::size_t o = 0; o < out; ++o) sums[o][0] += values * load(weight + o * in + i);
    }
    for (std::size_t o = 0; o < out; ++o) {
      for (std::size_t v = 1; v < vectors; ++v) sums[o][0] += sums[o][v];
      y[o] = sum_of(sums[o][0]) + (bias == nullptr ? 0 : bias[o]);
    }
    for (; i < in; ++i) {
      for (std::size_t o = 0; o < out; ++o) y[o] += weight[o * in + i] * x[i];
    }
  }
}

template <std::size_t out, std::size_t vectors>
[[gnu::always_inline]] inline void gradient_of_vectors(std::size_t rows, std::size_t in, const float* x,
                                                       const float* dy, bool add, float* gradient) {
  Floats sums[out][vectors];
  for (std::size_t o = 0; o < out; ++o) {
    for (std::size_t v = 0; v < vectors; ++v) sums[o][v] = add ? load(gradient + o * in + v * lanes) : Floats{};
  }
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const Floats values = load(x + row * in + v * lanes);
      for (std::size_t o = 0; o < out; ++o) sums[o][v] += dy[row * out + o] * values;
    }
  }
  for (std::size_t o = 0; o < out; ++o) {
    for (std::size_t v = 0; v < vectors; ++v) store(gradient + o * in + v * lanes, sums[o][v]);
  }
}

template <std::size_t out>
[[gnu::always_inline]] inline void weight_gradient(std::size_t rows, std::size_t in, const float* x, const float* dy,
                                                   bool add, float* gradient) {
  constexpr std::size_t vectors = vectors_at_once(out);
  std::size_t i = 0;
  for (; i + vectors * lanes <= in; i += vectors * lanes) {
    gradient_of_vectors<out, vectors>(rows, in, x + i, dy, add, gradient + i);
  }
  for (; i + lanes <= in; i += lanes) gradient_of_vectors<out, 1>(rows, in, x + i, dy, add, gradient + i);
  for (; i < in; ++i) {
    for (std::size_t o = 0; o < out; ++o) {
      float sum = add ? gradient[o * in + i] : 0;
      for (std::size_t row = 0; row < rows; ++row) sum += dy[row * out + o] * x[row * in + i];
      gradient[o * in + i] = sum;
    }
  }
}

}  // namespace

// Not by a list of template arguments: a lambda between would not be compiled for each version's vectors.
DDP_MULTIVERSION void forward(std::int64_t rows, std::int64_t in, std::int64_t out, const float* x, const float* weight,
                              const float* bias, float* y) {
  const auto r = static_cast<std::size_t>(rows), i = static_cast<std::size_t>(in);
  if (out == 1) return forward<1>(r, i, x, weight, bias, y);
  if (out == 2) return forward<2>(r, i, x, weight, bias, y);
  if (out == 3) return forward<3>(r, i, x, weight, bias, y);
  if (out == 4) return forward<4>(r, i, x, weight, bias, y);
  if (out == 5) return forward<5>(r, i, x, weight, bias, y);
  if (out == 6) return forward<6>(r, i, x, weight, bias, y);
  if (out == 7) return forward<7>(r, i, x, weight, bias, y);
  forward<8>(r, i, x, weight, bias, y);
}

DDP_MULTIVERSION void weight_gradient(std::int64_t rows, std::int64_t in, std::int64_t out, const float* x,
                                      const float* dy, bool add, float* gradient) {
  const auto r = static_cast<std::size_t>(rows), i = static_cast<std::size_t>(in);
  if (out == 1) return weight_gradient<1>(r, i, x, dy, add, gradient);
  if (out == 2) return weight_gradient<2>(r, i, x, dy, add, gradient);
  if (out == 3) return weight_gradient<3>(r, i, x, dy, add, gradient);
  if (out == 4) return weight_gradient<4>(r, i, x, dy, add, gradient);
  if (out == 5) return weight_gradient<5>(r, i, x, dy, add, gradient);
  if (out == 6) return weight_gradient<6>(r, i, x, dy, add, gradient);
  if (out == 7) return weight_gradient<7>(r, i, x, dy, add, gradient);
  weight_gradient<8>(r, i, x, dy, add, gradient);
}

}  // namespace ddp::skinny
