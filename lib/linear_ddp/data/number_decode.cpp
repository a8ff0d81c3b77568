#include <linear_ddp/data/number_decode.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "kernels/half.hpp"

namespace ddp {
namespace {

struct Half {
  std::uint16_t bits;
};

double to_double(Half half) {
  return static_cast<double>(kernels::Fp16::to_float(half.bits));
}

struct Bfloat16 {
  std::uint16_t bits;
};

double to_double(Bfloat16 value) {
  return static_cast<double>(kernels::Bf16::to_float(value.bits));
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
double decode_one(const char* in) {
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), in, sizeof(T));
  if constexpr (swapped) std::reverse(bytes.begin(), bytes.end());
  return to_double(std::bit_cast<T>(bytes));
}

template <class T, bool swapped>
void decode(const char* in, std::size_t count, double* out, std::size_t out_stride) {
  if (out_stride == 1) {  // a loop with the step fixed is vectorized
    for (std::size_t i = 0; i < count; ++i) out[i] = decode_one<T, swapped>(in + i * sizeof(T));
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i * out_stride] = decode_one<T, swapped>(in + i * sizeof(T));
  }
}

struct Type {
  std::string_view npy_name, safetensors_name;
  std::size_t bytes;
  decltype(NumberDecoder::decode) native, swapped;
};

template <class T>
constexpr Type type(std::string_view npy_name, std::string_view safetensors_name) {
  return {npy_name, safetensors_name, sizeof(T), decode<T, false>, decode<T, true>};
}

constexpr Type types[] = {
    type<Boolean>("b1", "BOOL"),      type<std::uint8_t>("u1", "U8"),   type<std::int8_t>("i1", "I8"),
    type<std::uint16_t>("u2", "U16"), type<std::int16_t>("i2", "I16"),  type<std::uint32_t>("u4", "U32"),
    type<std::int32_t>("i4", "I32"),  type<std::uint64_t>("u8", "U64"), type<std::int64_t>("i8", "I64"),
    type<Half>("f2", "F16"),          type<float>("f4", "F32"),         type<double>("f8", "F64"),
    type<Bfloat16>("", "BF16")};  // NumPy has none

std::optional<NumberDecoder> decoder(std::string_view Type::*spelling, std::string_view name, bool big_endian) {
  const auto* known =
      std::find_if(std::begin(types), std::end(types), [&](const Type& t) { return t.*spelling == name; });
  if (known == std::end(types)) return std::nullopt;
  const bool swapped = big_endian == (std::endian::native == std::endian::little);
  return NumberDecoder{known->bytes, !swapped && known->native == decode<float, false>,
                       swapped ? known->swapped : known->native};
}

}  // namespace

std::optional<NumberDecoder> npy_decoder(std::string_view type, char byte_order) {
  if (type.empty() || std::string_view("<>=|").find(byte_order) == std::string_view::npos) return std::nullopt;
  const bool native_is_big = std::endian::native == std::endian::big;
  return decoder(&Type::npy_name, type, byte_order == '>' || (byte_order != '<' && native_is_big));
}

std::optional<NumberDecoder> safetensors_decoder(std::string_view dtype) {
  return decoder(&Type::safetensors_name, dtype, false);
}

}  // namespace ddp
