#include "fuzz/table_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <numeric>
#include <optional>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/feature_source.hpp>
#include "fuzz/thread_ranks.hpp"

namespace ddp::fuzz {
namespace {

struct Outcome {
  std::optional<TableShare> share;
  std::string refusal;
};

Outcome read(const World& world, const std::string& path, const Reading& reading) {
  try {
    return {read_table(world, path, reading.text, reading.selection, reading.file), ""};
  } catch (const AgreedError& error) {
    require(error.status() == Status::wrong_use, fmt::format("a file is refused as wrong use, not: {}", error.what()));
    return {std::nullopt, error.what()};
  } catch (const std::exception& error) {
    require(false, fmt::format("all ranks agree on what is wrong, not: {}", error.what()));
  }
  return {};
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

void check_share(const TableShare& share, const ColumnSelection& selection) {
  const auto rows = static_cast<std::size_t>(share.rows);
  require(share.source || share.features.size() == rows * share.feature_names.size(), "features are rows x names");
  require(share.targets.size() == rows * share.target_names.size(), "targets are rows x names");
  require(share.weights.empty() || share.weights.size() == rows, "a weight for each row");
  require(!share.feature_names.empty(), "there is a feature");
  require(all_finite(share.features) && all_finite(share.targets) && all_finite(share.weights), "values are finite");
  require(std::all_of(share.weights.begin(), share.weights.end(), [](double weight) { return weight >= 0; }),
          "no weight is negative");
  if (selection.target_kind == TargetKind::numbers) return;
  const auto classes = static_cast<double>(share.labels.size());
  require(std::all_of(share.targets.begin(), share.targets.end(),
                      [&](double label) { return label >= 0 && label < classes && label == std::floor(label); }),
          "a label is the index of a class");
}

/// The ranks' shares, one behind the other.
Outcome joined(std::vector<Outcome>& parts, const ColumnSelection& selection) {
  Outcome all = std::move(parts[0]);
  if (all.share) check_share(*all.share, selection);
  for (std::size_t rank = 1; rank < parts.size(); ++rank) {
    require(parts[rank].share.has_value() == all.share.has_value(), "either all ranks have a share or none has");
    require(parts[rank].refusal == all.refusal, "all ranks refuse a file alike");
    if (!all.share) continue;
    TableShare& first = *all.share;
    const TableShare& next = *parts[rank].share;
    check_share(next, selection);
    require(next.first_row == first.first_row + first.rows, "the ranks' rows follow each other");
    require(next.total_rows == first.total_rows && next.feature_names == first.feature_names &&
                next.target_names == first.target_names && next.labels == first.labels && next.notices == first.notices,
            "all ranks see the same table");
    first.rows += next.rows;
    first.features.insert(first.features.end(), next.features.begin(), next.features.end());
    first.targets.insert(first.targets.end(), next.targets.begin(), next.targets.end());
    first.weights.insert(first.weights.end(), next.weights.begin(), next.weights.end());
  }
  if (all.share) require(all.share->rows == all.share->total_rows, "the ranks' rows are all rows");
  return all;
}

Outcome read_on(int ranks, const std::string& path, const Reading& reading) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  on_ranks(ranks,
           [&](const World& world) { outcomes[static_cast<std::size_t>(world.rank())] = read(world, path, reading); });
  return joined(outcomes, reading.selection);
}

/// Features left in the file are those that are read at once, and refused where those are.
void check_left_features(const std::string& path, const Reading& reading, const Outcome& at_once) {
  Reading leaving = reading;
  leaving.selection.leaves_features = true;
  Outcome left = read_on(1, path, leaving);
  if (at_once.share) require(left.share.has_value(), "what can be read at once can be read later: " + left.refusal);
  if (!left.share || !left.share->source) return;
  FeatureSource& source = *left.share->source;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(left.share->rows));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<double> x(rows.size() * static_cast<std::size_t>(source.columns()));
  std::vector<float> floats(x.size());
  try {
    source.read(rows, x.data());
  } catch (const Error& error) {
    require(!at_once.share && error.status() == Status::wrong_use,
            "features are refused in vain: " + std::string(error.what()));
    return;
  }
  require(at_once.share && x == at_once.share->features, "features left in the file are those read at once");
  try {
    source.read(rows, floats.data());
  } catch (const UseError&) {
    require(!std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(static_cast<float>(value)); }),
            "only what float does not hold is refused as float");
    return;
  }
  require(std::equal(x.begin(), x.end(), floats.begin(), floats.end(),
                     [](double value, float as_float) { return static_cast<float>(value) == as_float; }),
          "as float, features are the nearest ones");
}

}  // namespace

void choose_columns(Choices& choices, ColumnSelection& selection) {
  selection.missing = std::array{Missing::error, Missing::drop, Missing::mean}.at(choices.below(3));
  if (choices.yes()) selection.target_kind = TargetKind::labels;
  if (choices.yes()) selection.weights = "#1";
  if (choices.yes()) selection.excluded = {"#2"};
  if (choices.yes()) selection.targets = {"#0"};
  if (choices.yes()) selection.features = {"x", "#3"};
}

void check_table(const std::string& path, Choices& choices, const Reading& reading) {
  const Outcome alone = read_on(1, path, reading);
  const Outcome shared = read_on(2 + static_cast<int>(choices.below(3)), path, reading);
  require(alone.share.has_value() == shared.share.has_value(),
          fmt::format("one rank and several agree on what is a table: '{}' and '{}'", alone.refusal, shared.refusal));
  check_left_features(path, reading, alone);
  if (!alone.share) return;
  const TableShare &one = *alone.share, &several = *shared.share;
  require(one.total_rows == several.total_rows && one.feature_names == several.feature_names &&
              one.target_names == several.target_names && one.labels == several.labels,
          "one rank and several read the same table");
  require(one.targets == several.targets && one.weights == several.weights, "one rank and several read the same rows");
  // Means are rounded in the order of the ranks.
  if (reading.selection.missing != Missing::mean) {
    require(one.features == several.features, "one rank and several read the same features");
  }
}

}  // namespace ddp::fuzz
