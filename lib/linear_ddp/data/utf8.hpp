#pragma once

#include <cstddef>
#include <string_view>

namespace ddp {

/// Bytes of the UTF-8 character (RFC 3629) that a text begins with; 0 when it begins with none.
[[nodiscard]] std::size_t utf8_character_bytes(std::string_view text) noexcept;

[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace ddp
