#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/table.hpp>

namespace ddp {
namespace {

char folded(char c) {
  return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Levenshtein's distance, row by row; upper and lower case are equal.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (folded(a[i]) == folded(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// The known name nearest to an unknown one; with none near, the first names that there are.
std::string suggestion(const std::vector<std::string>& names, const std::string& wanted) {
  const auto nearest = std::min_element(names.begin(), names.end(), [&](const auto& left, const auto& right) {
    return edits_between(left, wanted) < edits_between(right, wanted);
  });
  if (nearest != names.end() && edits_between(*nearest, wanted) <= (wanted.size() + 1) / 3) {
    return fmt::format("did you mean {}?", excerpt(*nearest));
  }
  constexpr std::size_t shown = 10;
  std::string list;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i) list += (i == 0 ? "" : ", ") + excerpt(names[i]);
  return "the columns are " + list + (names.size() > shown ? ", ..." : "");
}

std::optional<std::size_t> as_number(std::string_view wanted) {
  if (wanted.size() < 2 || wanted[0] != '#') return std::nullopt;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(wanted.data() + 1, wanted.data() + wanted.size(), number);
  if (end != wanted.data() + wanted.size()) return std::nullopt;
  // Too many digits for any table: out of range, not a name.
  return error == std::errc{} ? number : std::string_view::npos;
}

std::size_t find_column(const std::vector<std::string>& names, const std::string& wanted) {
  if (const auto number = as_number(wanted)) {
    if (*number < names.size()) return *number;
    throw UseError(fmt::format("there is no column {}: the table has {} columns, '#0' to '#{}'", excerpt(wanted),
                               names.size(), names.size() - 1));
  }
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found == names.end()) {
    throw UseError(fmt::format("there is no column {}; {}", excerpt(wanted), suggestion(names, wanted)));
  }
  const auto index = found - names.begin();
  if (const auto again = std::find(found + 1, names.end(), wanted); again != names.end()) {
    throw UseError(fmt::format("the name {} is ambiguous: columns '#{}' and '#{}' have it; ask by number",
                               excerpt(wanted), index, again - names.begin()));
  }
  return static_cast<std::size_t>(index);
}

}  // namespace

SelectedColumns select_columns(const std::vector<std::string>& names, const ColumnSelection& selection) {
  if (names.empty()) throw UseError("the table has no columns");
  enum class Role : char { none, feature, target };
  std::vector<Role> roles(names.size(), Role::none);
  SelectedColumns columns;
  const auto take = [&](std::size_t column, Role role, std::vector<std::int64_t>& list) {
    if (roles[column] != Role::none) {
      throw UseError(fmt::format("column '#{}' ({}) is asked for {}", column, excerpt(names[column]),
                                 roles[column] == role ? "twice" : "as a feature and as a target"));
    }
    roles[column] = role;
    list.push_back(static_cast<std::int64_t>(column));
  };

  for (const auto& wanted : selection.targets) take(find_column(names, wanted), Role::target, columns.targets);
  if (selection.targets.empty()) take(names.size() - 1, Role::target, columns.targets);
  for (const auto& wanted : selection.features) take(find_column(names, wanted), Role::feature, columns.features);
  for (std::size_t column = 0; selection.features.empty() && column < names.size(); ++column) {
    if (roles[column] == Role::none) take(column, Role::feature, columns.features);
  }
  if (columns.features.empty()) {
    throw UseError(fmt::format(
        "no feature is left: each of the table's {} columns is a target; is the delimiter right?", names.size()));
  }
  return columns;
}

}  // namespace ddp
