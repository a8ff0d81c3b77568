#pragma once

#include <concepts>
#include <string>
#include <utility>

#include <linear_ddp/base/error.hpp>

namespace ddp {

/// The same number in a narrower type. Throws Error when it does not fit (what: "the number of …").
template <std::integral To, std::integral From>
[[nodiscard]] To narrow(From value, const char* what) {
  if (!std::in_range<To>(value)) fail("narrow " + std::string(what), std::to_string(value) + " does not fit");
  return static_cast<To>(value);
}

/// The smallest multiple of `step` that is not below `value`.
template <std::integral T>
[[nodiscard]] constexpr T round_up(T value, T step) {
  return (value + step - 1) / step * step;
}

}  // namespace ddp
