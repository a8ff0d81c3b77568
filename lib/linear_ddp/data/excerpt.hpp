#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ddp {

/// The text in quotes as a message shows it: at most 40 bytes of it, and only UTF-8 that can be seen;
/// other bytes as \x1b.
[[nodiscard]] std::string excerpt(std::string_view text);

/// "'a', 'b'": the first ten of them, and ", ..." when there are more.
[[nodiscard]] std::string excerpt(std::span<const std::string> texts);

}  // namespace ddp
