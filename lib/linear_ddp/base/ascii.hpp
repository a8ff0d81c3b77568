#pragma once

namespace ddp {

/// As the C locale has it; other bytes stay as they are.
[[nodiscard]] constexpr char ascii_lower(char c) noexcept {
  return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace ddp
