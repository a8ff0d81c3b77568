#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cstdint>
#include <cstring>

namespace ddp {

/// Bytes behind a text that parse_plain_number may look at.
inline constexpr std::size_t plain_number_padding = 16;

namespace plain {

/// Eight characters, the first in the lowest byte.
[[nodiscard]] inline std::uint64_t load_eight(const char* at) noexcept {
  std::uint64_t eight;
  std::memcpy(&eight, at, sizeof eight);
  return eight;
}

/// How many of them are digits before the first that isn't.
[[nodiscard]] inline std::size_t count_digits(std::uint64_t eight) noexcept {
  // Digits are 0x30 to 0x39: they have the 3 in front, and keep it when 6 is added. A carry from one byte into the next
  // comes only from a byte that is no digit, so all before the first such byte is right.
  constexpr std::uint64_t front = 0xF0F0F0F0F0F0F0F0, zeros = 0x3030303030303030, sixes = 0x0606060606060606;
  const std::uint64_t others = ((eight & front) ^ zeros) | (((eight + sixes) & front) ^ zeros);
  return static_cast<std::size_t>(std::countr_zero(others)) / 8;
}

/// What the first n of them, all digits, stand for. Neighbours are put together: 8 digits to 4 pairs, to 2 fours, to 1.
[[nodiscard]] inline std::uint64_t digits_value(std::uint64_t eight, std::size_t n) noexcept {
  const std::size_t half_shift = 4 * (8 - n);  // a shift by 64 at once would not be defined
  eight = (eight << half_shift << half_shift) & 0x0F0F0F0F0F0F0F0F;
  eight = (eight * 2561 >> 8) & 0x00FF00FF00FF00FF;
  eight = (eight * 6553601 >> 16) & 0x0000FFFF0000FFFF;
  return eight * 42949672960001 >> 32;
}

inline constexpr std::array<std::uint64_t, 9> whole_powers{1,      10,      100,      1000,     10000,
                                                           100000, 1000000, 10000000, 100000000};
/// What may stand before n more digits, so that all together stay near 10^18, which has room in 63 bits.
inline constexpr std::array<std::uint64_t, 9> most_before = [] {
  auto most = whole_powers;
  for (std::uint64_t& power : most) power = 1'000'000'000'000'000'000 / power;
  return most;
}();
inline constexpr std::array<double, 23> powers{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
inline constexpr std::array<long double, 28> long_powers{
    1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
    1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

/// The double nearest to digits / 10^decimals; false when that needs more than one exact operation.
[[nodiscard]] inline bool divide(std::uint64_t digits, std::size_t decimals, double& value) noexcept {
  // Both are doubles, and the quotient of two doubles is rounded once (Clinger 1990, "How to read floating point
  // numbers accurately").
  if (digits <= std::uint64_t{1} << 53 && decimals < powers.size()) {
    value = static_cast<double>(static_cast<std::int64_t>(digits)) / powers[decimals];
    return true;
  }
  // Both are long doubles of 64 bits. Rounding their quotient to 64 bits and then to 53 gives what rounding once does,
  // but where the first lands in the middle between two doubles: there the second no longer knows on which side it was.
  if (LDBL_MANT_DIG == 64 && decimals < long_powers.size()) {
    const long double quotient = static_cast<long double>(static_cast<std::int64_t>(digits)) / long_powers[decimals];
    std::uint64_t significand;
    std::memcpy(&significand, &quotient, sizeof significand);
    value = static_cast<double>(quotient);
    return (significand & 0x7FF) != 0x400;
  }
  return false;
}

}  // namespace plain

/// The double nearest to a whole text that is like most numbers in tables: a minus or none, up to 7 digits, a point and
/// up to 18 digits or so. False for all others, numbers or not; then `value` means nothing. Behind the text there are
/// plain_number_padding readable bytes.
[[nodiscard]] inline bool parse_plain_number(const char* first, const char* last, char decimal,
                                             double& value) noexcept {
  if constexpr (std::endian::native != std::endian::little) return false;
  // Half of all numbers are negative: nothing here may depend on the sign by a jump, which would be guessed wrong.
  const bool negative = *first == '-';
  first += negative;
  if (first >= last) return false;
  const auto length = static_cast<std::size_t>(last - first);
  const std::uint64_t front = plain::load_eight(first);
  const std::size_t whole = plain::count_digits(front);
  const bool point = whole < length;
  if (whole > 7 || whole > length || (point && first[whole] != decimal) || whole + length == 1) return false;

  std::uint64_t digits = 0;
  if (length <= 8) {
    const std::uint64_t before = (std::uint64_t{1} << (8 * whole)) - 1;
    const std::uint64_t pointless = point ? (front & before) | (front >> 8 & ~before) : front;
    const std::size_t n = length - point;
    if (plain::count_digits(pointless) < n) return false;
    digits = plain::digits_value(pointless, n);
  } else {
    digits = plain::digits_value(front, whole);
    for (const char* at = first + whole + 1; at < last; at += 8) {
      const auto n = static_cast<std::size_t>(std::min<std::ptrdiff_t>(8, last - at));
      const std::uint64_t eight = plain::load_eight(at);
      if (plain::count_digits(eight) < n || digits > plain::most_before[n]) return false;
      digits = digits * plain::whole_powers[n] + plain::digits_value(eight, n);
    }
  }
  if (!plain::divide(digits, length - whole - point, value)) return false;
  value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) | std::uint64_t{negative} << 63);
  return true;
}

}  // namespace ddp
