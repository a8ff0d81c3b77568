#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <linear_ddp/data/table.hpp>

namespace ddp {

/// Features that stay in their files, or in memory in a form of their own, of which a rank reads any rows as often as
/// it wants; for tables that memory does not hold, or must not hold twice. Several threads may read at once: the next
/// batch's and an evaluation's.
class FeatureSource {
 public:
  virtual ~FeatureSource() = default;
  FeatureSource(const FeatureSource&) = delete;
  FeatureSource& operator=(const FeatureSource&) = delete;

  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] std::int64_t columns() const noexcept { return static_cast<std::int64_t>(names_.size()); }
  /// Nothing is read from files any more.
  [[nodiscard]] bool in_memory() const noexcept { return in_memory_; }

  /// x [rows.size(), columns] of rows of the table. Throws UseError naming file, row and column of a value that is not
  /// finite.
  virtual void read(std::span<const std::int64_t> rows, double* x) = 0;
  /// The same as float. Throws UseError for what is beyond it too.
  virtual void read(std::span<const std::int64_t> rows, float* x);
  /// A hint: these rows will be read next.
  virtual void will_need(std::span<const std::int64_t> rows) const = 0;
  /// As messages name a row: "data.npy, row 7".
  [[nodiscard]] virtual std::string name_row(std::int64_t row) const = 0;

 protected:
  FeatureSource(std::vector<std::string> names, bool in_memory) : names_(std::move(names)), in_memory_(in_memory) {}

 private:
  std::vector<std::string> names_;
  bool in_memory_;
};

/// (x - mean) / scale, for each column.
[[nodiscard]] std::shared_ptr<FeatureSource> standardized(std::shared_ptr<FeatureSource> source,
                                                          std::vector<double> mean, std::vector<double> scale);
/// Row i is row rows[i] of the source.
[[nodiscard]] std::shared_ptr<FeatureSource> selected(std::shared_ptr<FeatureSource> source,
                                                      std::vector<std::int64_t> rows);
/// The first source's rows, `first_rows` in number, and then the second one's. What was joined before stays flat.
[[nodiscard]] std::shared_ptr<FeatureSource> joined(std::shared_ptr<FeatureSource> first, std::int64_t first_rows,
                                                    std::shared_ptr<FeatureSource> second);

/// x of this rank's rows [first, first + count), wherever the features are; what is not in memory is read into `block`.
[[nodiscard]] std::span<const double> own_features(const TableShare& share, std::int64_t first, std::int64_t count,
                                                   std::vector<double>& block);
/// So many rows make a block that the processor's caches hold.
[[nodiscard]] std::int64_t rows_of_block(const TableShare& share);
/// Calls visit(x of some rows) for all of this rank's rows, a block at a time.
template <class Visit>
void each_block(const TableShare& share, const Visit& visit) {
  std::vector<double> block;
  const std::int64_t most = rows_of_block(share);
  for (std::int64_t row = 0; row < share.rows; row += most) {
    visit(own_features(share, row, std::min(most, share.rows - row), block));
  }
}

}  // namespace ddp
