#include <linear_ddp/data/prepare.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/feature_source.hpp>
#include <linear_ddp/data/labels.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

std::string counted(std::int64_t count, const char* one, const char* more) {
  return fmt::format("{} {}", count, count == 1 ? one : more);
}

void mark_gaps(const std::vector<double>& values, std::vector<bool>& stays) {
  if (values.empty()) return;
  const std::size_t columns = values.size() / stays.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) stays[i / columns] = false;
  }
}

}  // namespace

void drop_gaps(const World& world, TableShare& share) {
  std::vector<bool> stays(static_cast<std::size_t>(share.rows), true);
  for (const auto* values : {&share.features, &share.targets, &share.weights}) mark_gaps(*values, stays);
  for (auto* values : {&share.features, &share.targets, &share.weights}) take_rows(*values, stays);
  share.rows = std::count(stays.begin(), stays.end(), true);
  const std::int64_t rows_before = share.total_rows;
  place_share(world, share);
  if (share.total_rows == rows_before) return;
  share.notices.push_back(fmt::format("{}: {} of {} left out: a value is missing in them", share.path,
                                      rows_before - share.total_rows, counted(rows_before, "row", "rows")));
}

void fill_gaps(const World& world, TableShare& share) {
  const std::size_t columns = share.feature_names.size();
  // So many more digits than a value has that the ranks' number does not show in the mean.
  std::vector<long double> sums(columns);
  std::vector<std::int64_t> present(columns);
  for (std::size_t i = 0; i < share.features.size(); ++i) {
    if (std::isnan(share.features[i])) continue;
    sums[i % columns] += share.features[i];
    ++present[i % columns];
  }
  all_reduce_sum(world, std::span(sums));
  all_reduce_sum(world, std::span(present));
  std::int64_t gaps = 0;
  for (std::size_t column = 0; column < columns; ++column) {
    gaps += share.total_rows - present[column];
    if (present[column] > 0) continue;
    throw AgreedError(Status::wrong_use, fmt::format("{}: column {} has no value at all, and so no mean; --exclude it",
                                                     share.path, excerpt(share.feature_names[column])));
  }
  for (std::size_t i = 0; i < share.features.size(); ++i) {
    if (!std::isnan(share.features[i])) continue;
    share.features[i] = static_cast<double>(sums[i % columns] / static_cast<long double>(present[i % columns]));
  }
  if (gaps == 0) return;
  share.notices.push_back(fmt::format("{}: {} filled with the mean of the column", share.path,
                                      counted(gaps, "missing value was", "missing values were")));
}

void require_weight(const World& world, const TableShare& share) {
  std::int64_t above[2] = {static_cast<std::int64_t>(share.weights.size()),
                           std::count_if(share.weights.begin(), share.weights.end(), [](double w) { return w > 0; })};
  all_reduce_sum(world, std::span(above));
  if (above[0] == 0 || above[1] > 0) return;
  throw AgreedError(Status::wrong_use,
                    fmt::format("{}: the weights of all rows are 0: there is nothing to learn from", share.path));
}

void append_file(TableShare& share, TableShare next) {
  const auto require_same = [&](const std::vector<std::string>& names, const std::vector<std::string>& others,
                                const char* kind) {
    const auto differ = std::mismatch(names.begin(), names.end(), others.begin(), others.end());
    if (differ.first == names.end() && differ.second == others.end()) return;
    const auto shown = [](auto at, const auto& of) { return at == of.end() ? "no such one" : excerpt(*at); };
    throw UseError(fmt::format("{}: {} {} is {}, but {} in {}; the files of a table have the same columns", next.path,
                               kind, differ.first - names.begin() + 1, shown(differ.second, others),
                               shown(differ.first, names), share.path));
  };
  require_same(share.feature_names, next.feature_names, "feature");
  require_same(share.target_names, next.target_names, "target");

  LabelList labels;
  for (const auto& label : share.labels) labels.index(label);
  std::vector<double> index_of;
  for (const auto& label : next.labels) index_of.push_back(static_cast<double>(labels.index(label)));
  if (!index_of.empty()) {
    for (double& target : next.targets) target = index_of[static_cast<std::size_t>(target)];
  }
  share.labels = labels.take();

  if ((share.source == nullptr) != (next.source == nullptr)) {
    throw UseError(fmt::format("{}: not stored as {} is; the files of a table are of one kind", next.path, share.path));
  }
  if (share.source) share.source = joined(share.source, share.total_rows, next.source);
  share.pieces.push_back({share.total_rows + next.first_row, next.rows});
  share.rows += next.rows;
  share.total_rows += next.total_rows;
  share.features.insert(share.features.end(), next.features.begin(), next.features.end());
  share.targets.insert(share.targets.end(), next.targets.begin(), next.targets.end());
  share.weights.insert(share.weights.end(), next.weights.begin(), next.weights.end());
  share.notices.insert(share.notices.end(), next.notices.begin(), next.notices.end());
}

}  // namespace ddp
