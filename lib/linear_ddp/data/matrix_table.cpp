#include <linear_ddp/data/matrix_table.hpp>

#include <fmt/format.h>

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
    for (ColumnSink sink : sinks) {
      const bool is_left = sink.column < left_columns;
      if (!is_left) sink.column -= left_columns;
      (is_left ? of_left : of_right).push_back(sink);
    }
    left_->read(first_row, rows, std::move(of_left));
    right_->read(first_row, rows, std::move(of_right));
  }

 private:
  std::unique_ptr<Matrix> left_, right_;
};

/// A file of few bytes may have very many columns, filled in or deflated, and each needs names here.
void require_columns(const InputFile& file, const Matrix& matrix) {
  constexpr double always = 16 << 20, most_times_the_file = 1032;
  const double bytes = static_cast<double>(matrix.columns()) * 2 * sizeof(std::string);
  if (bytes <= always + most_times_the_file * static_cast<double>(file.size())) return;
  throw UseError(fmt::format("{}: its shape is {}, too many columns for a file of {} bytes; is it transposed?",
                             matrix.name(), shape_text(matrix.shape()), file.size()));
}

std::vector<std::string> names_of(const InputFile& file, const Matrix& matrix, const std::string& key) {
  require_columns(file, matrix);
  if (matrix.columns() == 1 && !key.empty()) return {key};
  std::vector<std::string> names;
  for (std::int64_t column = 0; column < matrix.columns(); ++column) names.push_back(fmt::format("{}#{}", key, column));
  return names;
}

std::vector<ColumnSink> sinks_of(const SelectedColumns& selected, TableShare& share) {
  std::vector<ColumnSink> all;
  if (share.rows == 0) return all;  // a rank without rows has no place for them
  const auto add = [&](const std::vector<std::int64_t>& columns, std::vector<double>& values) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      all.push_back({static_cast<std::size_t>(columns[i]), values.data() + i, columns.size()});
    }
  };
  add(selected.features, share.features);
  add(selected.targets, share.targets);
  add(selected.weights, share.weights);
  return all;
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
  table.matrix->read(first_row, share.rows, sinks_of(table.selected, share));
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
  table.names = names_of(table.file, *table.matrix, "");
  table.selected = select_columns_of(table.file, table.names, selection);
}

void take_matrices(MatrixTable& table, const OpenMatrix& open, const ArrayKeys& keys,
                   const ColumnSelection& selection) {
  auto x = open(keys.x);
  table.names = names_of(table.file, *x, keys.x);
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
  const std::vector<std::string> targets = names_of(table.file, *y, keys.y);
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
