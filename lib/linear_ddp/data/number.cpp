#include <linear_ddp/data/number.hpp>

#include <fast_float/fast_float.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <linear_ddp/base/ascii.hpp>

namespace ddp {
namespace {

NumberFault fault_of(std::string_view text, bool whole) noexcept {
  if (is_missing(text)) return NumberFault::missing;
  if (!whole) return NumberFault::not_a_number;
  return text.find_first_of("0123456789") == text.npos ? NumberFault::not_finite : NumberFault::out_of_range;
}

}  // namespace

bool is_missing(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 7> spellings{"", "na", "n/a", "nan", "null", "none", "?"};
  return std::any_of(spellings.begin(), spellings.end(), [&](std::string_view spelling) {
    return std::equal(text.begin(), text.end(), spelling.begin(), spelling.end(),
                      [&](char ours, char theirs) { return ascii_lower(ours) == theirs; });
  });
}

Number parse_number(std::string_view text, char decimal) noexcept {
  const char* first = text.data();
  const char* const last = first + text.size();
  // fast_float refuses a leading plus, as the standard does.
  if (last - first > 1 && first[0] == '+' && first[1] != '-') ++first;
  double value = 0;
  const fast_float::parse_options options{fast_float::chars_format::general, decimal};
  const auto [end, error] = fast_float::from_chars_advanced(first, last, value, options);
  // Newer versions report overflow and underflow as errors too; the value tells them apart.
  const bool whole = error != std::errc::invalid_argument && end == last && !text.empty();
  if (whole && std::isfinite(value)) return {value, NumberFault::none};
  return {0, fault_of(text, whole)};
}

}  // namespace ddp
