#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/host_device.hpp"

namespace ddp::kernels {

/// e^x for x <= 0, within 2 ulp, and never 0: below -86 it stays e^-86 (4e-38). NaN for NaN. Without branches and
/// tables, so that compilers turn loops over it into vectors, which they do not with std::exp.
DDP_HOST_DEVICE float exp_of_nonpositive(float x) {
  // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 · 2^23 rounds to an integer, which then is in the low bits.
  constexpr float log2_e = 1.44269504F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F, shift = 12582912.0F;
  constexpr std::int32_t shift_bits = 0x4B400000, exponent_bias = 127;
  x = x < -86.0F ? -86.0F : x;
  const float shifted = x * log2_e + shift;
  const float n = shifted - shift;
  const float r = (x - n * ln2_high) - n * ln2_low;
  // The polynomial of expf in S. Moshier's Cephes Math Library, https://www.netlib.org/cephes/.
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const std::int32_t exponent = __builtin_bit_cast(std::int32_t, shifted) - shift_bits + exponent_bias;
  return p * __builtin_bit_cast(float, exponent << 23);
}

/// log(1 + u) for 0 <= u <= 1, within 2 ulp: 2 artanh(s) with s = u / (2 + u) <= 1/3, by its series, whose first
/// omitted term is s^15 / 15.
DDP_HOST_DEVICE float log1p_of_unit(float u) {
  const float s = u / (2.0F + u), square = s * s;
  float p = 1.0F / 13.0F;
  p = p * square + 1.0F / 11.0F;
  p = p * square + 1.0F / 9.0F;
  p = p * square + 1.0F / 7.0F;
  p = p * square + 1.0F / 5.0F;
  p = p * square + 1.0F / 3.0F;
  p = p * square;
  return 2.0F * s + 2.0F * s * p;
}

/// In double the standard library's: what is computed in it waits for digits, not for vectors.
DDP_HOST_DEVICE double exp_of_nonpositive(double x) {
  return std::exp(x);
}
DDP_HOST_DEVICE double log1p_of_unit(double u) {
  return std::log1p(u);
}

}  // namespace ddp::kernels
