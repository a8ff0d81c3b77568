#include <linear_ddp/nn/layout.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <numeric>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/nn/activation.hpp>

namespace ddp {
namespace {

constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();

std::string too_large(std::int64_t in, std::int64_t out) {
  return fmt::format("Linear({} -> {}) has more than 2^31 - 1 weights", in, out);
}

}  // namespace

std::string LinearShape::description() const {
  std::string text;
  std::int64_t from = in;
  for (const std::int64_t size : hidden) {
    text += fmt::format("Linear({} -> {}), {}, ", from, size, name_of(activation));
    from = size;
  }
  return text + fmt::format("Linear({} -> {})", from, out);
}

std::int64_t LinearShape::outputs() const noexcept {
  return std::accumulate(hidden.begin(), hidden.end(), heads * out);
}

ParameterLayout::ParameterLayout(const LinearShape& shape) {
  constexpr std::int64_t most_heads = 1024;  // whose losses a GPU sums side by side
  if (shape.heads < 1 || shape.heads > most_heads) {
    throw UseError(fmt::format("{} layers side by side: there can be 1 to {}", shape.heads, most_heads));
  }
  if (shape.heads > 1 && !shape.hidden.empty()) throw UseError("heads side by side have no hidden layers");
  std::int64_t from = shape.in, place = 0;
  for (const std::int64_t size : shape.hidden) {
    add_layer(fmt::format("{}.", place), from, size, shape.bias);
    from = size;
    place += shape.activation == Activation::none ? 1 : 2;  // an activation is a module of its own
  }
  if (shape.out > limit / shape.heads) throw UseError(too_large(from, shape.out));
  add_layer(shape.hidden.empty() ? "" : fmt::format("{}.", place), from, shape.heads * shape.out, shape.bias);
}

void ParameterLayout::add_layer(const std::string& prefix, std::int64_t in, std::int64_t out, bool bias) {
  if (in < 1 || out < 1) {
    throw UseError(fmt::format("a linear layer needs at least 1 input and 1 output, not {} and {}", in, out));
  }
  if (in > limit || out > limit || in > limit / out) throw UseError(too_large(in, out));
  const auto add = [this](std::string name, std::vector<std::int64_t> shape) {
    constexpr std::int64_t alignment = 16 / sizeof(float);
    std::int64_t numel = 1;
    for (const std::int64_t extent : shape) numel *= extent;
    slots_.push_back({std::move(name), std::move(shape), numel_, numel});
    numel_ += round_up(numel, alignment);
    return slots_.back().offset;
  };
  LinearLayer layer{in, out};
  layer.weight = add(prefix + "weight", {out, in});
  if (bias) layer.bias = add(prefix + "bias", {out});
  layers_.push_back(layer);
}

std::int64_t ParameterLayout::parameters() const noexcept {
  std::int64_t sum = 0;
  for (const auto& slot : slots_) sum += slot.numel;
  return sum;
}

std::string ParameterLayout::description() const {
  std::string text;
  for (const auto& slot : slots_) {
    text += fmt::format("{}{} [{}] f32", text.empty() ? "" : ", ", slot.name, fmt::join(slot.shape, ", "));
  }
  return text;
}

}  // namespace ddp
