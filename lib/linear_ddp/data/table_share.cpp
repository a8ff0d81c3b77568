#include <linear_ddp/data/table_share.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_set>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/complaints.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {

SelectedColumns select_columns_of(const InputFile& file, const std::vector<std::string>& names,
                                  const ColumnSelection& selection) {
  try {
    return select_columns(names, selection);
  } catch (const UseError& error) {
    throw UseError(fmt::format("{}: {}", file.path(), error.what()));
  }
}

TableShare empty_share(const InputFile& file, const std::vector<std::string>& names, const SelectedColumns& columns) {
  TableShare share;
  share.path = file.path();
  for (const auto column : columns.features) share.feature_names.push_back(names[static_cast<std::size_t>(column)]);
  for (const auto column : columns.targets) share.target_names.push_back(names[static_cast<std::size_t>(column)]);
  return share;
}

void require_usable(const TableShare& share, const SelectedColumns& columns, const ColumnSelection& selection) {
  Complaints complaints;
  const auto check = [&](const std::vector<double>& values, const std::vector<std::string>& of, bool gaps,
                         double least) {
    for (std::size_t i = 0; i < values.size() && !complaints.enough(); ++i) {
      const double value = values[i];
      if ((std::isfinite(value) && value >= least) || (gaps && std::isnan(value))) continue;
      const bool negative = std::isfinite(value);
      complaints.add(negative            ? RowFault::negative_weight
                     : std::isnan(value) ? RowFault::missing
                                         : RowFault::not_finite,
                     [&] {
                       return fmt::format(
                           "{}, row {}, column {} (both from 0): {}", share.path,
                           share.first_row + static_cast<std::int64_t>(i / of.size()), excerpt(of[i % of.size()]),
                           negative ? fmt::format("the weight {} is negative", value)
                                    : fmt::format("{} is not a finite number; complete the row or remove it", value));
                     });
    }
  };
  constexpr double lowest = std::numeric_limits<double>::lowest();
  const bool drops = selection.missing == Missing::drop;
  check(share.features, share.feature_names, selection.missing != Missing::error, lowest);
  check(share.targets, share.target_names, drops, lowest);
  std::vector<std::string> weights;
  for (const auto column : columns.weights) weights.push_back(fmt::format("#{}", column));
  check(share.weights, weights, drops, 0);
  complaints.require_none();
}

std::vector<double> take_rows(std::vector<double>& values, const std::vector<bool>& stays) {
  std::vector<double> taken;
  if (values.empty()) return taken;
  const auto columns = static_cast<std::ptrdiff_t>(values.size() / stays.size());
  auto from = values.begin(), end = values.begin();
  for (const bool stay : stays) {
    if (stay)
      end = std::copy(from, from + columns, end);
    else
      taken.insert(taken.end(), from, from + columns);
    from += columns;
  }
  values.erase(end, values.end());
  return taken;
}

std::vector<RowRange> TableShare::ranges() const {
  return pieces.empty() ? std::vector<RowRange>{{first_row, rows}} : pieces;
}

std::optional<std::string> repeated_name(const std::vector<std::string>& names) {
  std::unordered_set<std::string_view> known;
  known.reserve(names.size());
  for (const auto& name : names) {
    if (!known.insert(name).second) return name;
  }
  return std::nullopt;
}

void require_same_size(const World& world, const InputFile& file) {
  const auto sizes = all_gather(world, file.size());
  const auto other = std::find_if(sizes.begin(), sizes.end(), [&](std::int64_t size) { return size != sizes[0]; });
  if (other == sizes.end()) return;
  throw AgreedError(
      Status::wrong_use,
      fmt::format("{} has {} bytes for rank 0 but {} for rank {}; let all ranks read the same file, and let "
                  "it be complete",
                  file.path(), sizes[0], *other, other - sizes.begin()));
}

void place_share(const World& world, TableShare& share) {
  share.first_row = sum_of_ranks_before(world, share.rows);
  share.total_rows = share.rows;
  all_reduce_sum(world, std::span(&share.total_rows, 1));
}

}  // namespace ddp
