#include <linear_ddp/data/split.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/number.hpp>
#include <linear_ddp/nn/torch_generator.hpp>

namespace ddp {
namespace {

/// Moves the rows `keeps(row)` to the front, and returns how many values they have.
template <class Keeps>
std::vector<double> partition_rows(std::vector<double>& values, std::size_t rows, const Keeps& keeps) {
  std::vector<double> taken;
  const std::size_t width = rows == 0 ? 0 : values.size() / rows;
  std::size_t kept = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(row * width);
    if (keeps(row)) {
      std::copy_n(from, width, values.begin() + static_cast<std::ptrdiff_t>(kept++ * width));
    } else {
      taken.insert(taken.end(), from, from + static_cast<std::ptrdiff_t>(width));
    }
  }
  values.resize(kept * width);
  return taken;
}

/// A class the label is, or none of them: classes.size().
std::size_t find_class(const std::vector<std::string>& classes, const std::string& label) {
  const auto same = std::find(classes.begin(), classes.end(), label);
  if (same != classes.end()) return static_cast<std::size_t>(same - classes.begin());
  const Number own = parse_number(label, '.');
  if (own.fault != NumberFault::none) return classes.size();
  const auto equal = std::find_if(classes.begin(), classes.end(), [&](const std::string& text) {
    const Number number = parse_number(text, '.');
    return number.fault == NumberFault::none && number.value == own.value;
  });
  return static_cast<std::size_t>(equal - classes.begin());
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
  if (share.pieces.empty()) share.pieces = {{share.first_row, share.rows}};
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
  const auto keeps = [&](std::size_t row) { return !takes[row]; };
  taken.features = partition_rows(share.features, takes.size(), keeps);
  taken.targets = partition_rows(share.targets, takes.size(), keeps);
  taken.weights = partition_rows(share.weights, takes.size(), keeps);
  taken.rows = std::count(takes.begin(), takes.end(), true);
  share.rows -= taken.rows;
  taken.total_rows = marked_before(share.total_rows);
  share.total_rows -= taken.total_rows;
  taken.first_row = taken.pieces.front().first;
  share.first_row = share.pieces.front().first;
  return taken;
}

void use_classes(TableShare& share, const std::vector<std::string>& classes) {
  std::vector<double> index_of;
  for (const auto& label : share.labels) {
    const std::size_t found = find_class(classes, label);
    if (found == classes.size()) {
      std::string known;
      for (std::size_t c = 0; c < std::min<std::size_t>(10, classes.size()); ++c) {
        known += (c == 0 ? "" : ", ") + excerpt(classes[c]);
      }
      throw UseError(fmt::format("{}: column {} has the class {}, which the model does not know; it has {}{}",
                                 share.path, excerpt(share.target_names.at(0)), excerpt(label), known,
                                 classes.size() > 10 ? ", ..." : ""));
    }
    index_of.push_back(static_cast<double>(found));
  }
  for (double& target : share.targets) target = index_of[static_cast<std::size_t>(target)];
  share.labels = classes;
}

}  // namespace ddp
