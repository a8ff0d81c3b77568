#include <linear_ddp/data/excerpt.hpp>

#include <fmt/format.h>

namespace ddp {

std::string excerpt(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::size_t length = text.size();
  if (length > longest) {
    length = longest;
    // Not in the middle of a UTF-8 character, which has at most three continuation bytes.
    while (length > longest - 4 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  }
  std::string shown = "'";
  for (const char character : text.substr(0, length)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte == 0x7F)
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += character;
  }
  return shown + (length < text.size() ? "...'" : "'");
}

}  // namespace ddp
