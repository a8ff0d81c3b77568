#include <linear_ddp/data/sparse_features.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/launch/shared_array.hpp>

namespace ddp {
namespace {

/// Compressed sparse rows: a row's values end at ends[row], and begin where those of the row before end.
struct CompressedRows {
  SharedArrayOf<std::int64_t> ends;
  SharedArrayOf<std::int32_t> columns;
  SharedArrayOf<double> values;  ///< of double precision, as they may still be standardised
};

class SparseFeatures final : public FeatureSource {
 public:
  SparseFeatures(CompressedRows rows, std::vector<std::string> names, std::string path)
      : FeatureSource(std::move(names), true), rows_(std::move(rows)), path_(std::move(path)) {}

  void read(std::span<const std::int64_t> rows, double* x) override { spread(rows, x); }
  void read(std::span<const std::int64_t> rows, float* x) override { spread(rows, x); }
  void will_need(std::span<const std::int64_t>) const override {}
  std::string name_row(std::int64_t row) const override { return fmt::format("{}, data row {}", path_, row + 1); }

 private:
  template <class T>
  void spread(std::span<const std::int64_t> rows, T* x) const {
    std::fill_n(x, std::ssize(rows) * columns(), T{0});
    for (const std::int64_t row : rows) {
      const std::int64_t begin = row == 0 ? 0 : rows_.ends.data()[row - 1], end = rows_.ends.data()[row];
      for (std::int64_t i = begin; i < end; ++i) {
        const double value = rows_.values.data()[i];
        const std::int32_t column = rows_.columns.data()[i];
        x[column] = static_cast<T>(value);
        if (!std::isfinite(x[column])) refuse(row, column, value);
      }
      x += columns();
    }
  }

  [[noreturn]] void refuse(std::int64_t row, std::int32_t column, double value) const {
    throw UseError(fmt::format("{}, column {}: {:g} is beyond the range of float (3.4e38): rescale it", name_row(row),
                               excerpt(names()[static_cast<std::size_t>(column)]), value));
  }

  CompressedRows rows_;
  std::string path_;
};

}  // namespace

double bytes_of_sparse(std::int64_t rows, std::int64_t values) {
  constexpr double of_row = sizeof(std::int64_t), of_value = sizeof(std::int32_t) + sizeof(double);
  return static_cast<double>(rows) * of_row + static_cast<double>(values) * of_value;
}

std::shared_ptr<FeatureSource> share_sparse(const World& world, const SparseRows& own,
                                            const std::vector<RowRange>& pieces, std::int64_t total_rows,
                                            std::int64_t base, std::vector<std::string> names, const std::string& path,
                                            std::vector<std::string>& notices) {
  agree(world, [&] {
    if (std::in_range<std::int32_t>(names.size())) return;
    throw UseError(fmt::format("{}: {} features are more than 2^31 - 1; hash them into fewer", path, names.size()));
  });
  std::int64_t total_values = std::ssize(own.values);
  all_reduce_sum(world, std::span(&total_values, 1));
  CompressedRows all{{world, total_rows}, {world, total_values}, {world, total_values}};

  std::int64_t row = 0, at = 0, values_before = 0;  // of this rank; of the pieces before
  std::vector<SharedMemory::Range> rows_written, values_written;
  for (const RowRange& piece : pieces) {
    const std::int64_t begin = at;
    const auto end_of = [&](std::int64_t i) {
      return static_cast<std::int64_t>(own.ends[static_cast<std::size_t>(i)]);
    };
    std::int64_t values = piece.count == 0 ? 0 : end_of(row + piece.count - 1) - begin;
    const std::int64_t first = values_before + sum_of_ranks_before(world, values);
    for (std::int64_t i = 0; i < piece.count; ++i, ++row)
      all.ends.data()[piece.first + i] = first + end_of(row) - begin;
    for (; at < begin + values; ++at) {
      const auto& [index, value] = own.values[static_cast<std::size_t>(at)];
      all.columns.data()[first + at - begin] = static_cast<std::int32_t>(index - base);
      all.values.data()[first + at - begin] = value;
    }
    rows_written.push_back({piece.first, piece.count});
    values_written.push_back({first, values});
    all_reduce_sum(world, std::span(&values, 1));
    values_before += values;
  }
  all.ends.exchange(world, rows_written);
  all.columns.exchange(world, values_written);
  all.values.exchange(world, values_written);
  if (auto notice = notice_of_copies(world, all.values.why_not_shared()); !notice.empty())
    notices.push_back(std::move(notice));
  return std::make_shared<SparseFeatures>(std::move(all), std::move(names), path);
}

}  // namespace ddp
