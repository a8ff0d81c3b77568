#include <linear_ddp/data/utf8.hpp>

namespace ddp {
namespace {

constexpr bool between(unsigned value, unsigned low, unsigned high) {
  return low <= value && value <= high;
}

}  // namespace

std::size_t utf8_character_bytes(std::string_view text) noexcept {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(text[at])); };
  if (text.empty()) return 0;
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = between(first, 0xC2, 0xDF) ? 2 : between(first, 0xE0, 0xEF) ? 3 : 4;
  if (!between(first, 0xC2, 0xF4) || text.size() < bytes) return 0;
  // Each character has one form, the shortest; surrogates and what is beyond U+10FFFF are none.
  if (!between(byte(1),
               first == 0xE0   ? 0xA0
               : first == 0xF0 ? 0x90
                               : 0x80,
               first == 0xED   ? 0x9F
               : first == 0xF4 ? 0x8F
                               : 0xBF)) {
    return 0;
  }
  for (std::size_t at = 2; at < bytes; ++at) {
    if (!between(byte(at), 0x80, 0xBF)) return 0;
  }
  return bytes;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t bytes = utf8_character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace ddp
