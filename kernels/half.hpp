#pragma once

#include <cstdint>

#include "kernels/host_device.hpp"

// Numbers of 16 bits and floats, without branches, so that compilers turn loops into vectors. To the nearest, ties to
// even; NaN stays one.
namespace ddp::kernels {

/// IEEE 754 binary16: what is 65520 or more becomes infinite.
struct Fp16 {
  DDP_HOST_DEVICE static std::uint16_t from_float(float value) {
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t sign = (bits >> 16U) & 0x8000U, size = bits & 0x7FFFFFFFU;
    // The exponent's offset is 112 less, and 13 bits fall away, rounded by an addend that carries.
    const std::uint32_t normal = (size + 0xFFFU + ((size >> 13U) & 1U) - (112U << 23U)) >> 13U;
    // Beside 0.5 a float's last bit is 2^-24, the step of subnormal halves: the addition rounds to it.
    const std::uint32_t subnormal =
        __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, size) + 0.5F) - 0x3F000000U;
    std::uint32_t half = size < 0x38800000U ? subnormal : normal;
    half = size >= 0x477FF000U ? 0x7C00U : half;
    half = size > 0x7F800000U ? 0x7E00U : half;
    return static_cast<std::uint16_t>(sign | half);
  }
  DDP_HOST_DEVICE static float to_float(std::uint16_t bits) {
    // Two powers of two apart from float's exponent; the product is exact, and makes subnormal halves normal floats.
    const std::uint32_t size = (bits & 0x7FFFU) << 13U;
    const std::uint32_t finite = __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, size) * 0x1p112F);
    const std::uint32_t magnitude = (bits & 0x7C00U) == 0x7C00U ? size | 0x7F800000U : finite;
    return __builtin_bit_cast(float, magnitude | ((bits & 0x8000U) << 16U));
  }
};

/// bfloat16, the upper half of a float.
struct Bf16 {
  DDP_HOST_DEVICE static std::uint16_t from_float(float value) {
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
    return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? (bits >> 16U) | 0x40U : rounded);
  }
  DDP_HOST_DEVICE static float to_float(std::uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16U);
  }
};

}  // namespace ddp::kernels
