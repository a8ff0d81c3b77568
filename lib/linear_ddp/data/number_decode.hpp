#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace ddp {

/// Numbers of one type, converted to double (the nearest one, for integers above 2^53).
struct NumberDecoder {
  std::size_t element_bytes = 0;
  bool is_float = false;  ///< this processor's
  /// Reads `count` elements that follow each other and writes them `out_stride` doubles apart.
  void (*decode)(const char* in, std::size_t count, double* out, std::size_t out_stride) = nullptr;
};

/// type: NumPy's kind and size, "f8", "i2", "b1", …; byte_order: one of < > = |. Nothing for another one.
[[nodiscard]] std::optional<NumberDecoder> npy_decoder(std::string_view type, char byte_order);

/// "F64", "BF16", "BOOL", …, which are little-endian. Nothing for another one.
[[nodiscard]] std::optional<NumberDecoder> safetensors_decoder(std::string_view dtype);

}  // namespace ddp
