#pragma once

#include <cmath>

namespace ddp {

/// An unevaluated sum of two doubles, of which `low` is below half a unit in the last place of `high`: about 32 digits.
/// (Dekker, 1971; the sums and products without error of Knuth and of Ogita, Rump, Oishi, 2005.) Whatever includes this
/// is compiled with -ffp-contract=off: a product and a sum that become one instruction break it.
struct DoubleDouble {
  double high = 0, low = 0;
};

/// a + b, exactly.
[[nodiscard]] inline DoubleDouble two_sum(double a, double b) {
  const double sum = a + b, b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

/// a · b, exactly, unless it underflows.
[[nodiscard]] inline DoubleDouble two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

[[nodiscard]] inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = two_sum(a.high, b.high), low = two_sum(a.low, b.low);
  const DoubleDouble sum = two_sum(high.high, high.low + low.high);
  return two_sum(sum.high, sum.low + low.low);
}

[[nodiscard]] inline DoubleDouble operator*(double a, DoubleDouble b) {
  const DoubleDouble product = two_product(a, b.high);
  return two_sum(product.high, product.low + a * b.low);
}

}  // namespace ddp
