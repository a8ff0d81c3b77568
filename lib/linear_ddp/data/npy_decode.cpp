#include <linear_ddp/data/npy_decode.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>

#include <linear_ddp/base/half.hpp>

namespace ddp {
namespace {

struct Half {
  std::uint16_t bits;
};

double to_double(Half half) {
  return static_cast<double>(from_half(half.bits));
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

struct Type {
  std::string_view name;
  std::size_t bytes;
  decltype(NpyDecoder::decode) native, swapped;
};

template <class T>
constexpr Type type(std::string_view name) {
  return {name, sizeof(T), decode<T, false>, decode<T, true>};
}

constexpr Type types[] = {type<Boolean>("b1"),       type<std::uint8_t>("u1"),  type<std::int8_t>("i1"),
                          type<std::uint16_t>("u2"), type<std::int16_t>("i2"),  type<std::uint32_t>("u4"),
                          type<std::int32_t>("i4"),  type<std::uint64_t>("u8"), type<std::int64_t>("i8"),
                          type<Half>("f2"),          type<float>("f4"),         type<double>("f8")};

}  // namespace

std::optional<NpyDecoder> npy_decoder(std::string_view type, char byte_order) {
  if (std::string_view("<>=|").find(byte_order) == std::string_view::npos) return std::nullopt;
  const auto* known = std::find_if(std::begin(types), std::end(types), [&](const Type& t) { return t.name == type; });
  if (known == std::end(types)) return std::nullopt;
  const bool swapped = byte_order == (std::endian::native == std::endian::little ? '>' : '<');
  return NpyDecoder{known->bytes, swapped ? known->swapped : known->native};
}

}  // namespace ddp
