#pragma once

#include <string_view>

namespace ddp {

/// Why a text is no number that can be used. missing: empty, NA, NaN and the like; not_finite: spelled-out infinity.
enum class NumberFault { none, missing, not_finite, out_of_range, not_a_number };

struct Number {
  double value = 0;
  NumberFault fault = NumberFault::none;
};

/// Nothing, NA, NaN and the like.
[[nodiscard]] bool is_missing(std::string_view text) noexcept;

/// The double nearest to a whole text, which has no blanks around it. Independent of the locale; what is too small
/// becomes subnormal or 0, what is too large is out_of_range.
[[nodiscard]] Number parse_number(std::string_view text, char decimal) noexcept;

}  // namespace ddp
