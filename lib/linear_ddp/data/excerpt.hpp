#pragma once

#include <string>
#include <string_view>

namespace ddp {

/// The text in quotes as a message shows it: at most 40 bytes, no control characters.
[[nodiscard]] std::string excerpt(std::string_view text);

}  // namespace ddp
