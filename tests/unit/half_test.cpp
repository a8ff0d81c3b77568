// Numbers of 16 bits, every one of them, against their definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/half.hpp"

namespace ddp::kernels {
namespace {

/// (-1)^sign · 2^(exponent - bias) · 1.mantissa, or with the exponent 0 of 0.mantissa and one power of two more.
double value_of(unsigned bits, int mantissa_bits, int bias) {
  const int exponent = static_cast<int>((bits & 0x7FFFU) >> static_cast<unsigned>(mantissa_bits));
  const auto mantissa = static_cast<double>(bits & ((1U << static_cast<unsigned>(mantissa_bits)) - 1));
  const double part = std::ldexp(mantissa, -mantissa_bits) + (exponent == 0 ? 0 : 1);
  return std::ldexp(part, std::max(exponent, 1) - bias) * ((bits & 0x8000U) != 0 ? -1 : 1);
}

template <class Half>
void expect_definition(int mantissa_bits, int bias, unsigned infinite) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = Half::to_float(half);
    if ((bits & 0x7FFFU) > infinite) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(Half::to_float(Half::from_float(value))));
      continue;
    }
    EXPECT_EQ(Half::from_float(value), half);
    if ((bits & 0x7FFFU) == infinite) {
      EXPECT_TRUE(std::isinf(value));
      continue;
    }
    EXPECT_EQ(static_cast<double>(value), value_of(bits, mantissa_bits, bias)) << bits;
    // Between it and the next, further from 0: the middle goes to the even one, what is beside it to the nearer one.
    const double next = value_of(bits + 1, mantissa_bits, bias);
    const auto middle = static_cast<float>((static_cast<double>(value) + next) / 2);
    const auto upper = static_cast<std::uint16_t>(bits + 1);
    EXPECT_EQ(Half::from_float(middle), bits % 2 == 0 ? half : upper) << bits;
    EXPECT_EQ(Half::from_float(std::nextafter(middle, 0.0F)), half) << bits;
    EXPECT_EQ(Half::from_float(std::nextafter(middle, 2 * static_cast<float>(next))), upper) << bits;
  }
  EXPECT_EQ(Half::from_float(std::numeric_limits<float>::infinity()), infinite);
  EXPECT_EQ(Half::from_float(std::numeric_limits<float>::max()), infinite);
}

TEST(Halves, Binary16) {
  expect_definition<Fp16>(10, 15, 0x7C00);
}
TEST(Halves, BFloat16) {
  expect_definition<Bf16>(7, 127, 0x7F80);
}

}  // namespace
}  // namespace ddp::kernels
