#include <linear_ddp/nn/activation.hpp>

#include "kernels/activation.hpp"

namespace ddp {

std::string_view name_of(Activation activation) noexcept {
  switch (activation) {
    case Activation::none:
      return "none";
    case Activation::relu:
      return "relu";
    case Activation::tanh:
      return "tanh";
    case Activation::gelu:
      return "gelu";
  }
  return "";
}

std::optional<Activation> activation_of(std::string_view name) noexcept {
  for (const auto one : {Activation::none, Activation::relu, Activation::tanh, Activation::gelu}) {
    if (name == name_of(one)) return one;
  }
  return std::nullopt;
}

void activate(Activation activation, std::span<double> values) noexcept {
  const auto each = [&](auto function) {
    for (double& value : values) value = function.value(value);
  };
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return each(kernels::Relu{});
    case Activation::tanh:
      return each(kernels::Tanh{});
    case Activation::gelu:
      return each(kernels::Gelu{});
  }
}

}  // namespace ddp
