#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/nearest.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/table.hpp>

namespace ddp {
namespace {

/// The known name nearest to an unknown one; with none near, the first names that there are.
std::string suggestion(const std::vector<std::string>& names, const std::string& wanted) {
  if (const std::string near = nearest(wanted, names); !near.empty()) {
    return fmt::format("did you mean {}?", excerpt(near));
  }
  return "the columns are " + excerpt(std::span(names));
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
  std::vector<std::string_view> roles(names.size());
  SelectedColumns columns;
  const auto take = [&](std::size_t column, std::string_view role) {
    if (!roles[column].empty()) {
      throw UseError(fmt::format("column '#{}' ({}) is asked for {}", column, excerpt(names[column]),
                                 roles[column] == role ? "twice" : fmt::format("{} and {}", role, roles[column])));
    }
    roles[column] = role;
    return static_cast<std::int64_t>(column);
  };

  if (selection.contents == Contents::targets_only) {
    if (names.size() != 1) {
      throw UseError(fmt::format("it has {} columns, but the targets are one", names.size()));
    }
    columns.targets = {0};
    return columns;
  }
  for (const auto& wanted : selection.targets)
    columns.targets.push_back(take(find_column(names, wanted), "as a target"));
  if (!selection.weights.empty()) {
    columns.weights.push_back(take(find_column(names, selection.weights), "as the weights"));
  }
  for (const auto& wanted : selection.excluded) take(find_column(names, wanted), "as one to exclude");
  if (selection.targets.empty() && selection.contents == Contents::both) {
    columns.targets.push_back(take(names.size() - 1, "as a target"));
  }
  for (const auto& wanted : selection.features) {
    columns.features.push_back(take(find_column(names, wanted), "as a feature"));
  }
  for (std::size_t column = 0; selection.features.empty() && column < names.size(); ++column) {
    if (roles[column].empty()) columns.features.push_back(take(column, "as a feature"));
  }
  if (columns.features.empty()) {
    throw UseError(fmt::format(
        "no feature is left: each of the table's {} columns is {}; is the delimiter right?", names.size(),
        columns.weights.empty() && selection.excluded.empty() ? "a target" : "a target, the weights or excluded"));
  }
  if (selection.target_kind == TargetKind::labels && columns.targets.size() != 1) {
    throw UseError(fmt::format("{} targets are asked for, but classes are one column's", columns.targets.size()));
  }
  return columns;
}

}  // namespace ddp
