#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <linear_ddp/data/byte_source.hpp>
#include <linear_ddp/data/matrix.hpp>
#include <linear_ddp/data/number_decode.hpp>

namespace ddp {

/// How an array's bytes lie in a file.
struct ArrayLayout {
  std::string type;  ///< as the format names it: "f8", "BF16"
  NumberDecoder decoder;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t data_begin = 0;
};

/// An array whose elements lie one after the other, to the end of its bytes: in NPY, NPZ, safetensors.
class StoredMatrix final : public Matrix {
 public:
  /// Throws UseError when the shape does not fill the bytes.
  StoredMatrix(std::unique_ptr<ByteSource> bytes, const ArrayLayout& layout);
  void read(std::int64_t first_row, std::int64_t rows, std::vector<ColumnSink> sinks) override;
  bool read_floats(std::int64_t first_row, std::int64_t rows, std::int64_t columns, float* values) override;
  [[nodiscard]] bool rereadable() const override { return bytes_->rereadable(); }
  void will_need(std::int64_t first_row, std::int64_t rows) const override;

 private:
  /// Bytes from `offset` of the elements on; until the next call.
  std::span<const char> read_block(std::int64_t offset, std::size_t bytes);
  void read_column(std::int64_t first_element, std::size_t count, double* values, std::size_t stride);
  void read_rows(std::int64_t first_row, std::size_t count, const std::vector<ColumnSink>& sinks);

  std::unique_ptr<ByteSource> bytes_;
  NumberDecoder decoder_;
  bool fortran_order_;
  std::int64_t data_begin_;
  std::vector<char> block_;
};

}  // namespace ddp
