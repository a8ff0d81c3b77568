#include <linear_ddp/data/excerpt.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <linear_ddp/data/utf8.hpp>

namespace ddp {

std::string excerpt(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string shown = "'";
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t character = utf8_character_bytes(text.substr(at));
    const std::size_t bytes = std::max<std::size_t>(1, character);
    if (at + bytes > longest) break;
    const auto byte = static_cast<unsigned char>(text[at]);
    if (character == 0 || byte < 0x20 || byte == 0x7F)
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += text.substr(at, bytes);
    at += bytes;
  }
  return shown + (at < text.size() ? "...'" : "'");
}

std::string excerpt(std::span<const std::string> texts) {
  constexpr std::size_t shown = 10;
  std::string list;
  for (const auto& text : texts.first(std::min(shown, texts.size())))
    list += (list.empty() ? "" : ", ") + excerpt(text);
  return list + (texts.size() > shown ? ", ..." : "");
}

}  // namespace ddp
