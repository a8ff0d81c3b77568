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

const char* parse_leading_number(const char* first, const char* last, char decimal, double& value) noexcept {
  // fast_float refuses a leading plus, as the standard does.
  if (last - first > 1 && first[0] == '+' && first[1] != '-') ++first;
  const fast_float::parse_options options{fast_float::chars_format::general, decimal};
  const auto [end, error] = fast_float::from_chars_advanced(first, last, value, options);
  // Newer versions report overflow and underflow as errors too; the value tells them apart.
  return error == std::errc::invalid_argument ? nullptr : end;
}

Number parse_number(std::string_view text, char decimal) noexcept {
  double value = 0;
  const char* const last = text.data() + text.size();
  const bool whole = parse_leading_number(text.data(), last, decimal, value) == last && !text.empty();
  if (whole && std::isfinite(value)) return {value, NumberFault::none};
  return {0, fault_of(text, whole)};
}

}  // namespace ddp
