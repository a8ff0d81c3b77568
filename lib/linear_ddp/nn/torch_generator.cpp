#include <linear_ddp/nn/torch_generator.hpp>

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

constexpr std::size_t normal_block = 16;  // two halves: the radii and the angles of 8 pairs

/// Box-Muller in float32, in place, as PyTorch's normal_fill does it.
void to_normal(std::span<float, normal_block> uniforms) {
  constexpr std::size_t half = normal_block / 2;
  for (std::size_t j = 0; j < half; ++j) {
    const float radius = std::sqrt(-2.0F * std::log(1.0F - uniforms[j]));
    const float angle = 2.0F * std::numbers::pi_v<float> * uniforms[j + half];
    uniforms[j] = radius * std::cos(angle);
    uniforms[j + half] = radius * std::sin(angle);
  }
}

}  // namespace

TorchGenerator::TorchGenerator(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

std::uint64_t TorchGenerator::next_64_bits() {
  const std::uint64_t high = engine_();  // drawn first; a named step, for operands are evaluated in no order
  return high << 32U | engine_();
}

float TorchGenerator::next_float() {
  return static_cast<float>(engine_() & 0xFFFFFFU) * 0x1p-24F;
}

double TorchGenerator::next_double() {
  return static_cast<double>(next_64_bits() & ((std::uint64_t{1} << 53U) - 1)) * 0x1p-53;
}

double TorchGenerator::next_normal() {
  if (spare_normal_) return *std::exchange(spare_normal_, std::nullopt);
  const double angle = 2.0 * std::numbers::pi * next_double();
  const double radius = std::sqrt(-2.0 * std::log1p(-next_double()));
  spare_normal_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

void TorchGenerator::rand(std::span<float> values) {
  for (float& value : values) value = next_float();
}

void TorchGenerator::uniform(std::span<float> values, float low, float high) {
  // PyTorch's compiler contracts the product and the sum into one rounding; this must not depend on ours.
  for (float& value : values) value = std::fma(next_float(), high - low, low);
}

void TorchGenerator::randn(std::span<float> values) {
  if (values.size() < normal_block) {
    for (float& value : values) value = static_cast<float>(next_normal());
    return;
  }
  rand(values);
  for (std::size_t begin = 0; begin + normal_block <= values.size(); begin += normal_block) {
    to_normal(values.subspan(begin).first<normal_block>());
  }
  if (values.size() % normal_block != 0) {  // the tail is not just filled up: its whole block is drawn anew
    rand(values.last(normal_block));
    to_normal(values.last<normal_block>());
  }
}

void TorchGenerator::randint(std::span<std::int64_t> values, std::int64_t bound) {
  if (bound < 1 || bound > std::numeric_limits<std::uint32_t>::max()) {
    fail("draw random integers", fmt::format("the bound {} is not in [1, 2^32)", bound));
  }
  for (std::int64_t& value : values) value = static_cast<std::int64_t>(engine_()) % bound;
}

std::vector<std::int64_t> TorchGenerator::randperm(std::int64_t n) {
  if (n < 0) fail("draw a random permutation", fmt::format("{} elements", n));
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  // From here on 32 bits modulo n would be visibly uneven, and PyTorch shuffles from the other end with 64 bits.
  if (n >= std::numeric_limits<std::uint32_t>::max() / 20) {
    for (std::size_t i = 0; i < order.size(); ++i) std::swap(order[i], order[next_64_bits() % (i + 1)]);
    return order;
  }
  for (std::size_t i = 0; i + 1 < order.size(); ++i) std::swap(order[i], order[i + engine_() % (order.size() - i)]);
  return order;
}

void init_linear(TorchGenerator& generator, std::int64_t in, std::span<float> weight, std::span<float> bias) {
  const auto bound = in > 0 ? static_cast<float>(1.0 / std::sqrt(static_cast<double>(in))) : 0.0F;
  generator.uniform(weight, -bound, bound);
  generator.uniform(bias, -bound, bound);
}

}  // namespace ddp
