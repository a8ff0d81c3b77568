#include <linear_ddp/data/matrix_table.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/nearest.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/feature_source.hpp>
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
    // What is read once is checked as a whole, wanted or not.
    if (!of_left.empty() || !left_->rereadable()) left_->read(first_row, rows, std::move(of_left));
    if (!of_right.empty() || !right_->rereadable()) right_->read(first_row, rows, std::move(of_right));
  }
  bool read_floats(std::int64_t first_row, std::int64_t rows, std::int64_t columns, float* values) override {
    return left_->read_floats(first_row, rows, columns, values);
  }
  [[nodiscard]] bool rereadable() const override { return left_->rereadable() && right_->rereadable(); }
  void will_need(std::int64_t first_row, std::int64_t rows) const override { left_->will_need(first_row, rows); }

 private:
  std::unique_ptr<Matrix> left_, right_;
};

/// A file of few bytes may have very many columns, filled in or deflated, and each needs names here.
void require_columns(const InputFile& file, const Matrix& matrix) {
  constexpr double always = 4 << 20, most_times_the_file = 1032;
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

/// Columns of a matrix that are neighbours there, and in the rows of values that they are read into.
struct Place {
  std::size_t column, count, offset;
};

std::vector<Place> places_of(const std::vector<std::int64_t>& columns) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0 && columns[i] == columns[i - 1] + 1) {
      ++places.back().count;
    } else {
      places.push_back({static_cast<std::size_t>(columns[i]), 1, i});
    }
  }
  return places;
}

void add_sinks(std::vector<ColumnSink>& sinks, const std::vector<Place>& places, std::size_t columns, double* values) {
  for (const Place& place : places) sinks.push_back({place.column, place.count, values + place.offset, columns});
}

/// Features that are read when they are wanted.
class MatrixFeatures final : public FeatureSource {
 public:
  MatrixFeatures(std::unique_ptr<MatrixTable> table, std::vector<std::string> names)
      : FeatureSource(std::move(names), false), table_(std::move(table)), places_(places_of(table_->selected.features)) {}

  using FeatureSource::read;
  void read(std::span<const std::int64_t> rows, double* x) override {
    const std::lock_guard lock(reading_);
    const auto width = static_cast<std::size_t>(columns());
    double* to = x;
    each_run(rows, [&](std::int64_t first_row, std::int64_t count) {
      sinks_.clear();
      add_sinks(sinks_, places_, width, to);
      table_->matrix->read(first_row, count, sinks_);
      to += count * columns();
    });
    require_finite(rows, std::span<const double>(x, to));
  }
  /// Without the way through double where the file has what is wanted.
  void read(std::span<const std::int64_t> rows, float* x) override {
    const bool first_columns = places_.size() == 1 && places_[0].column == 0;
    std::unique_lock lock(reading_);
    std::size_t done = 0;
    each_run(rows, [&](std::int64_t first_row, std::int64_t count) {
      const std::size_t numel = static_cast<std::size_t>(count * columns());
      if (!first_columns || !table_->matrix->read_floats(first_row, count, columns(), x)) return;
      require_finite(rows.subspan(done), std::span<const float>(x, numel));
      x += numel;
      done += static_cast<std::size_t>(count);
    });
    lock.unlock();
    if (done == 0) FeatureSource::read(rows, x);
  }
  void will_need(std::span<const std::int64_t> rows) const override {
    each_run(rows, [&](std::int64_t first, std::int64_t count) { table_->matrix->will_need(first, count); });
  }
  std::string name_row(std::int64_t row) const override { return fmt::format("{}, row {}", table_->file.path(), row); }

 private:
  template <class T>
  void require_finite(std::span<const std::int64_t> rows, std::span<const T> x) const {
    std::size_t others = 0;
    for (const T value : x)
      others += static_cast<std::size_t>(!std::isfinite(value));  // all of them: that is vectorized
    if (others == 0) return;
    const auto at = static_cast<std::size_t>(
        std::find_if_not(x.begin(), x.end(), [](T value) { return std::isfinite(value); }) - x.begin());
    throw UseError(fmt::format("{}, column {} (both from 0): {} is not a finite number; complete the row or remove it",
                               name_row(rows[at / names().size()]), excerpt(names()[at % names().size()]), x[at]));
  }

  /// Calls visit(first row, number) for rows that are neighbours in the file too.
  template <class Visit>
  static void each_run(std::span<const std::int64_t> rows, const Visit& visit) {
    for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
      for (end = begin + 1; end < rows.size() && rows[end] == rows[end - 1] + 1; ++end) {
      }
      visit(rows[begin], static_cast<std::int64_t>(end - begin));
    }
  }

  std::unique_ptr<MatrixTable> table_;
  std::vector<Place> places_;
  std::mutex reading_;  ///< the matrix reads into memory of its own
  std::vector<ColumnSink> sinks_;
};

TableShare read_share(MatrixTable& table, const ColumnSelection& selection, bool leaves_features,
                      std::int64_t first_row, std::int64_t end_row) {
  TableShare share = empty_share(table.file, table.names, table.selected);
  share.first_row = first_row;
  share.rows = end_row - first_row;
  std::vector<ColumnSink> sinks;
  const auto take = [&](const std::vector<std::int64_t>& columns, std::vector<double>& values) {
    values.resize(static_cast<std::size_t>(share.rows) * columns.size());
    if (share.rows == 0) return;  // and no place for any
    add_sinks(sinks, places_of(columns), columns.size(), values.data());
  };
  if (!leaves_features) take(table.selected.features, share.features);
  take(table.selected.targets, share.targets);
  take(table.selected.weights, share.weights);
  if (!sinks.empty() || !leaves_features) table.matrix->read(first_row, share.rows, std::move(sinks));
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

TableShare read_matrix_table(const World& world, std::unique_ptr<MatrixTable> table, const ColumnSelection& selection) {
  const std::int64_t rows = table->matrix->rows();
  const bool leaves_features =
      selection.leaves_features && selection.missing == Missing::error && table->matrix->rereadable();
  TableShare share = agree(world, [&] {
    return read_share(*table, selection, leaves_features, share_begin(rows, world.rank(), world.size()),
                      share_begin(rows, world.rank() + 1, world.size()));
  });
  if (leaves_features) share.source = std::make_shared<MatrixFeatures>(std::move(table), share.feature_names);
  place_share(world, share);
  return share;
}

std::string key_suggestion(const std::string& wanted, const std::vector<std::string>& keys) {
  const std::string near = nearest(wanted, keys);
  return fmt::format("{}; it has {}", near.empty() ? "" : fmt::format("; did you mean {}?", excerpt(near)),
                     keys.empty() ? "none" : excerpt(std::span(keys)));
}

}  // namespace ddp
