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

/// a · b. Throws UseError when it does not fit (what: "the values of a batch"): both come from what a user asked for.
template <std::integral T>
[[nodiscard]] constexpr T checked_product(T a, T b, const char* what) {
  T product{};
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  throw UseError(std::string(what) + ": " + std::to_string(a) + " times " + std::to_string(b) +
                 " is more than this machine can count; use smaller sizes");
}

/// The smallest multiple of `step` that is not below `value`.
template <std::integral T>
[[nodiscard]] constexpr T round_up(T value, T step) {
  return (value + step - 1) / step * step;
}

}  // namespace ddp
