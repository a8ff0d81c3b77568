#include <linear_ddp/data/number.hpp>

#include <fast_float/fast_float.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ddp {
namespace {

bool is_missing(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 7> spellings{"", "na", "n/a", "nan", "null", "none", "?"};
  const auto lower = [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::any_of(spellings.begin(), spellings.end(), [&](std::string_view spelling) {
    return std::equal(text.begin(), text.end(), spelling.begin(), spelling.end(),
                      [&](char ours, char theirs) { return lower(ours) == theirs; });
  });
}

NumberFault fault_of(std::string_view text, bool whole) noexcept {
  if (is_missing(text)) return NumberFault::missing;
  if (!whole) return NumberFault::not_a_number;
  return text.find_first_of("0123456789") == text.npos ? NumberFault::not_finite : NumberFault::out_of_range;
}

}  // namespace

Number parse_number(std::string_view text, char decimal) noexcept {
  const char* first = text.data();
  const char* const last = first + text.size();
  // fast_float refuses a leading plus, as the standard does.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') ++first;
  double value = 0;
  const auto [end, error] = fast_float::from_chars_advanced(
      first, last, value, fast_float::parse_options{fast_float::chars_format::general, decimal});
  // Newer versions report underflow as an error too; the value tells it from overflow.
  const bool whole = end == last && error != std::errc::invalid_argument;
  if (whole && std::isfinite(value)) [[likely]]
    return {value, NumberFault::none};
  return {0, fault_of(text, whole)};
}

}  // namespace ddp
