#include <linear_ddp/nn/layout.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include <linear_ddp/base/checked.hpp>

namespace ddp {

ParameterLayout::ParameterLayout(const LinearShape& shape) {
  constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
  if (shape.in < 1 || shape.out < 1) {
    throw UseError(
        fmt::format("a linear layer needs at least 1 input and 1 output, not {} and {}", shape.in, shape.out));
  }
  constexpr std::int64_t most_heads = 1024;  // whose losses a GPU sums side by side
  if (shape.heads < 1 || shape.heads > most_heads) {
    throw UseError(fmt::format("{} layers side by side: there can be 1 to {}", shape.heads, most_heads));
  }
  if (shape.in > limit || shape.out > limit || shape.in > limit / shape.out / shape.heads) {
    throw UseError(fmt::format("{}Linear({} -> {}) has more than 2^31 - 1 weights",
                               shape.heads == 1 ? "" : fmt::format("{} times ", shape.heads), shape.in, shape.out));
  }
  const auto add = [this](const char* name, std::vector<std::int64_t> tensor_shape) {
    constexpr std::int64_t alignment = 16 / sizeof(float);
    std::int64_t numel = 1;
    for (const std::int64_t extent : tensor_shape) numel *= extent;
    slots_.push_back({name, std::move(tensor_shape), numel_, numel});
    numel_ += round_up(numel, alignment);
  };
  add("weight", {shape.heads * shape.out, shape.in});
  if (shape.bias) add("bias", {shape.heads * shape.out});
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
