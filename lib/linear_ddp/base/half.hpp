#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ddp {

/// The value of an IEEE 754 binary16; each is a float.
[[nodiscard]] inline float from_half(std::uint16_t bits) noexcept {
  // Two powers of two apart from float's exponent; the product is exact, and makes subnormal halves normal floats.
  const std::uint32_t magnitude = (bits & 0x7FFFU) << 13U;
  const bool finite = (bits & 0x7C00U) != 0x7C00U;
  const float value =
      finite ? std::bit_cast<float>(magnitude) * 0x1p112F : std::bit_cast<float>(magnitude | 0x7F800000U);
  return std::copysign(value, (bits & 0x8000U) != 0 ? -1.0F : 1.0F);
}

/// The value of a bfloat16, the upper half of a float.
[[nodiscard]] inline float from_bfloat16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

}  // namespace ddp
