#include <linear_ddp/data/npy_decode.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

struct Half {
  std::uint16_t bits;
};

double to_double(Half half) {
  const int exponent = half.bits >> 10 & 0x1F;
  const int fraction = half.bits & 0x3FF;
  double magnitude = 0;
  if (exponent == 0)
    magnitude = std::ldexp(fraction, -24);
  else if (exponent < 0x1F)
    magnitude = std::ldexp(0x400 + fraction, exponent - 25);
  else
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return half.bits >> 15 ? -magnitude : magnitude;
}

struct Boolean {
  std::uint8_t byte;
};

double to_double(Boolean boolean) {
  return boolean.byte == 0 ? 0.0 : 1.0;
}

template <class T>
double to_double(T value) {
  return static_cast<double>(value);
}

template <class T, bool swapped>
void decode(const char* in, std::size_t in_stride, std::size_t count, double* out, std::size_t out_stride) {
  for (std::size_t i = 0; i < count; ++i, in += in_stride, out += out_stride) {
    std::array<char, sizeof(T)> bytes;
    std::memcpy(bytes.data(), in, sizeof(T));
    if constexpr (swapped) std::reverse(bytes.begin(), bytes.end());
    *out = to_double(std::bit_cast<T>(bytes));
  }
}

template <class T>
NpyDecoder decoder(bool swapped) {
  return {sizeof(T), swapped ? decode<T, true> : decode<T, false>};
}

}  // namespace

NpyDecoder npy_decoder(std::string_view type, char byte_order) {
  const bool swapped = byte_order == (std::endian::native == std::endian::little ? '>' : '<');
  if (type == "b1") return decoder<Boolean>(false);
  if (type == "u1") return decoder<std::uint8_t>(false);
  if (type == "i1") return decoder<std::int8_t>(false);
  if (type == "u2") return decoder<std::uint16_t>(swapped);
  if (type == "i2") return decoder<std::int16_t>(swapped);
  if (type == "u4") return decoder<std::uint32_t>(swapped);
  if (type == "i4") return decoder<std::int32_t>(swapped);
  if (type == "u8") return decoder<std::uint64_t>(swapped);
  if (type == "i8") return decoder<std::int64_t>(swapped);
  if (type == "f2") return decoder<Half>(swapped);
  if (type == "f4") return decoder<float>(swapped);
  if (type == "f8") return decoder<double>(swapped);
  throw UseError("there is no decoder for the dtype " + std::string(type));
}

}  // namespace ddp
