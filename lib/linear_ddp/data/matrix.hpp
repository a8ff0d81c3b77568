#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ddp {

/// Where the values of some columns go that are neighbours, there as in the matrix: rows are `stride` doubles apart.
struct ColumnSink {
  std::size_t column, count;
  double* values;
  std::size_t stride;
};

/// Numbers in a file, of which a rank reads some rows. An array of one dimension is one column.
class Matrix {
 public:
  virtual ~Matrix() = default;
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  /// As messages begin: the file, and what in it.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<std::int64_t>& shape() const noexcept { return shape_; }
  [[nodiscard]] std::int64_t rows() const noexcept { return shape_[0]; }
  [[nodiscard]] std::int64_t columns() const noexcept { return shape_.size() == 1 ? 1 : shape_[1]; }

  /// Rows [first_row, first_row + rows), which must be there, as doubles. Unless rereadable(), once.
  virtual void read(std::int64_t first_row, std::int64_t rows, std::vector<ColumnSink> sinks) = 0;
  /// Rows [first_row, first_row + rows) of the first columns, where these lie in the file as they do here, as floats:
  /// false otherwise, and nothing is read.
  virtual bool read_floats(std::int64_t /*first_row*/, std::int64_t /*rows*/, std::int64_t /*columns*/,
                           float* /*values*/) {
    return false;
  }
  /// Whether any rows can be read, at any time, without reading others.
  [[nodiscard]] virtual bool rereadable() const { return true; }
  /// A hint: these rows will be read soon.
  virtual void will_need(std::int64_t /*first_row*/, std::int64_t /*rows*/) const {}

 protected:
  /// Throws UseError for a shape that is no table's: neither one nor two sizes, no rows, no columns.
  Matrix(std::string name, std::vector<std::int64_t> shape);

 private:
  std::string name_;
  std::vector<std::int64_t> shape_;
};

/// As Python writes it: "(8,)"; no more of it than its first sizes.
[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace ddp
