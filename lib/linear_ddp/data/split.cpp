#include <linear_ddp/data/split.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/feature_source.hpp>
#include <linear_ddp/data/labels.hpp>
#include <linear_ddp/data/number.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/nn/torch_generator.hpp>

namespace ddp {
namespace {

/// The class that is the same number as a label.
std::optional<std::int64_t> find_number(const std::vector<std::string>& classes, const std::string& label) {
  const Number own = parse_number(label, '.');
  if (own.fault != NumberFault::none) return std::nullopt;
  const auto equal = std::find_if(classes.begin(), classes.end(), [&](const std::string& text) {
    const Number number = parse_number(text, '.');
    return number.fault == NumberFault::none && number.value == own.value;
  });
  return equal == classes.end() ? std::nullopt : std::optional<std::int64_t>(equal - classes.begin());
}

}  // namespace

std::vector<bool> held_back_rows(std::int64_t rows, double fraction, std::uint64_t seed) {
  const auto count = static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(rows)));
  if (count < 1 || count >= rows) {
    throw UseError(fmt::format("{} of {} rows leaves {}", fraction, rows, count < 1 ? "none out" : "none"));
  }
  const auto order = TorchGenerator(seed).randperm(rows);
  std::vector<bool> held_back(static_cast<std::size_t>(rows));
  std::for_each(order.end() - count, order.end(),
                [&](std::int64_t row) { held_back[static_cast<std::size_t>(row)] = true; });
  return held_back;
}

TableShare take_rows(TableShare& share, const std::vector<bool>& rows_of_table) {
  share.pieces = share.ranges();
  TableShare taken;
  taken.feature_names = share.feature_names;
  taken.target_names = share.target_names;
  taken.path = share.path;
  taken.labels = share.labels;

  std::vector<bool> takes;  // of this rank's rows
  const auto marked_before = [&](std::int64_t row) {
    return std::count(rows_of_table.begin(), rows_of_table.begin() + row, true);
  };
  for (RowRange& piece : share.pieces) {
    const auto begin = rows_of_table.begin() + piece.first, end = begin + piece.count;
    takes.insert(takes.end(), begin, end);
    const RowRange marked{marked_before(piece.first), std::count(begin, end, true)};
    taken.pieces.push_back(marked);
    piece = {piece.first - marked.first, piece.count - marked.count};
  }
  std::vector<bool> stays = takes;
  stays.flip();
  if (share.source) {
    std::vector<std::int64_t> marked, others;
    for (std::int64_t row = 0; row < share.total_rows; ++row) {
      (rows_of_table[static_cast<std::size_t>(row)] ? marked : others).push_back(row);
    }
    taken.source = selected(share.source, std::move(marked));
    share.source = selected(share.source, std::move(others));
  }
  taken.features = take_rows(share.features, stays);
  taken.targets = take_rows(share.targets, stays);
  taken.weights = take_rows(share.weights, stays);
  taken.rows = std::count(takes.begin(), takes.end(), true);
  share.rows -= taken.rows;
  taken.total_rows = marked_before(share.total_rows);
  share.total_rows -= taken.total_rows;
  taken.first_row = taken.pieces.front().first;
  share.first_row = share.pieces.front().first;
  return taken;
}

void use_classes(TableShare& share, const std::vector<std::string>& classes) {
  LabelList known;
  for (const auto& name : classes) known.index(name);
  std::vector<double> index_of;
  for (const auto& label : share.labels) {
    auto found = known.find(label);
    if (!found) found = find_number(classes, label);
    if (!found) {
      throw UseError(fmt::format("{}: column {} has the class {}, which the model does not know; it has {}", share.path,
                                 excerpt(share.target_names.at(0)), excerpt(label), excerpt(std::span(classes))));
    }
    index_of.push_back(static_cast<double>(*found));
  }
  for (double& target : share.targets) target = index_of[static_cast<std::size_t>(target)];
  share.labels = classes;
}

}  // namespace ddp
