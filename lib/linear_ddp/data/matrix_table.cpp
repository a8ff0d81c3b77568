#include <linear_ddp/data/matrix_table.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/nearest.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/launch/agree.hpp>

namespace ddp {
namespace {

/// Two matrices with the same rows, side by side.
class JoinedMatrix final : public Matrix {
 public:
  JoinedMatrix(std::unique_ptr<Matrix> left, std::unique_ptr<Matrix> right)
      : Matrix(left->name(), {left->rows(), left->columns() + right->columns()}),
        left_(std::move(left)),
        right_(std::move(right)) {}

  void read(std::int64_t first_row, std::int64_t rows, std::vector<ColumnSink> sinks) override {
    const auto left_columns = static_cast<std::size_t>(left_->columns());
    std::vector<ColumnSink> of_left, of_right;
    for (const ColumnSink& sink : sinks) {
      const std::size_t left = std::clamp(left_columns, sink.column, sink.column + sink.count) - sink.column;
      if (left > 0) of_left.push_back({sink.column, left, sink.values, sink.stride});
      if (left == sink.count) continue;
      of_right.push_back({sink.column + left - left_columns, sink.count - left, sink.values + left, sink.stride});
    }
    if (!of_left.empty()) left_->read(first_row, rows, std::move(of_left));
    if (!of_right.empty()) right_->read(first_row, rows, std::move(of_right));
  }
  [[nodiscard]] bool rereadable() const override { return left_->rereadable() && right_->rereadable(); }
  void will_need(std::int64_t first_row, std::int64_t rows) const override { left_->will_need(first_row, rows); }

 private:
  std::unique_ptr<Matrix> left_, right_;
};

std::vector<std::string> names_of(const Matrix& matrix, const std::string& key) {
  if (matrix.columns() == 1 && !key.empty()) return {key};
  std::vector<std::string> names;
  for (std::int64_t column = 0; column < matrix.columns(); ++column) names.push_back(fmt::format("{}#{}", key, column));
  return names;
}

/// Adds where some columns go, [rows, columns.size()] from `values` on.
void add_sinks(std::vector<ColumnSink>& sinks, const std::vector<std::int64_t>& columns, double* values) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0 && columns[i] == columns[i - 1] + 1) {
      ++sinks.back().count;
    } else {
      sinks.push_back({static_cast<std::size_t>(columns[i]), 1, values + i, columns.size()});
    }
  }
}

TableShare read_share(MatrixTable& table, const ColumnSelection& selection, std::int64_t first_row,
                      std::int64_t end_row) {
  TableShare share = empty_share(table.file, table.names, table.selected);
  share.first_row = first_row;
  share.rows = end_row - first_row;
  const auto rows = static_cast<std::size_t>(share.rows);
  share.features.resize(rows * share.feature_names.size());
  share.targets.resize(rows * share.target_names.size());
  share.weights.resize(rows * table.selected.weights.size());
  std::vector<ColumnSink> sinks;
  add_sinks(sinks, table.selected.features, share.features.data());
  add_sinks(sinks, table.selected.targets, share.targets.data());
  add_sinks(sinks, table.selected.weights, share.weights.data());
  table.matrix->read(first_row, share.rows, std::move(sinks));
  require_usable(share, table.selected, selection);
  return share;
}

}  // namespace

std::unique_ptr<MatrixTable> open_matrix_table(const World& world, const std::string& path,
                                               const std::function<void(MatrixTable&)>& open) {
  auto table = agree(world, [&] {
    auto opened = std::make_unique<MatrixTable>(path);
    open(*opened);
    return opened;
  });
  require_same_size(world, table->file);
  return table;
}

void take_matrix(MatrixTable& table, std::unique_ptr<Matrix> matrix, const ColumnSelection& selection) {
  table.matrix = std::move(matrix);
  table.names = names_of(*table.matrix, "");
  table.selected = select_columns_of(table.file, table.names, selection);
}

void take_matrices(MatrixTable& table, const OpenMatrix& open, const ArrayKeys& keys,
                   const ColumnSelection& selection) {
  auto x = open(keys.x);
  table.names = names_of(*x, keys.x);
  if (selection.contents == Contents::features_only) {
    table.matrix = std::move(x);
    table.selected = select_columns_of(table.file, table.names, selection);
    return;
  }
  if (keys.x == keys.y) {
    throw UseError(fmt::format("{}: {} cannot be the features and the targets", table.file.path(), excerpt(keys.x)));
  }
  auto y = open(keys.y);
  if (x->rows() != y->rows()) {
    throw UseError(fmt::format("{}: {} has {} rows but {} has {}; each row of the one needs its row of the other",
                               table.file.path(), excerpt(keys.x), x->rows(), excerpt(keys.y), y->rows()));
  }
  const std::vector<std::string> targets = names_of(*y, keys.y);
  ColumnSelection completed = selection;
  for (std::size_t i = 0; selection.targets.empty() && i < targets.size(); ++i) {
    completed.targets.push_back(fmt::format("#{}", table.names.size() + i));
  }
  table.names.insert(table.names.end(), targets.begin(), targets.end());
  table.matrix = std::make_unique<JoinedMatrix>(std::move(x), std::move(y));
  table.selected = select_columns_of(table.file, table.names, completed);
}

TableShare read_matrix_table(const World& world, MatrixTable& table, const ColumnSelection& selection) {
  const std::int64_t rows = table.matrix->rows();
  TableShare share = agree(world, [&] {
    return read_share(table, selection, share_begin(rows, world.rank(), world.size()),
                      share_begin(rows, world.rank() + 1, world.size()));
  });
  place_share(world, share);
  return share;
}

std::string key_suggestion(const std::string& wanted, const std::vector<std::string>& keys) {
  const std::string near = nearest(wanted, keys);
  return fmt::format("{}; it has {}", near.empty() ? "" : fmt::format("; did you mean {}?", excerpt(near)),
                     keys.empty() ? "none" : excerpt(std::span(keys)));
}

}  // namespace ddp
