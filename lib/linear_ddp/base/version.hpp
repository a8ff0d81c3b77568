#pragma once

#include <string_view>

namespace ddp {

/// "0.1.0": the version of CMakeLists.txt.
[[nodiscard]] std::string_view version() noexcept;

}  // namespace ddp
