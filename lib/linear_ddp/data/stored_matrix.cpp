#include <linear_ddp/data/stored_matrix.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

void require_size(const ByteSource& bytes, const ArrayLayout& layout) {
  auto expected = static_cast<std::int64_t>(layout.decoder.element_bytes);
  bool overflow = false;
  for (const std::int64_t size : layout.shape) overflow |= __builtin_mul_overflow(expected, size, &expected);
  const std::int64_t found = bytes.size() - layout.data_begin;
  if (!overflow && expected == found) return;
  throw UseError(fmt::format("{}: expected {} data bytes for shape {} of {}, file has {}; is it complete?",
                             bytes.name(), overflow ? "more than 2^63" : std::to_string(expected),
                             shape_text(layout.shape), layout.type, found));
}

}  // namespace

StoredMatrix::StoredMatrix(std::unique_ptr<ByteSource> bytes, const ArrayLayout& layout)
    : Matrix(bytes->name(), layout.shape),
      bytes_(std::move(bytes)),
      decoder_(layout.decoder),
      fortran_order_(layout.fortran_order),
      data_begin_(layout.data_begin) {
  require_size(*bytes_, layout);
}

void StoredMatrix::read(std::int64_t first_row, std::int64_t rows, std::vector<ColumnSink> sinks) {
  if (fortran_order_) {
    // The bytes come from the front to the back.
    std::sort(sinks.begin(), sinks.end(), [](const auto& a, const auto& b) { return a.column < b.column; });
    for (const ColumnSink& sink : sinks) {
      for (std::size_t i = 0; i < sink.count; ++i) {
        const std::int64_t first_element = static_cast<std::int64_t>(sink.column + i) * this->rows() + first_row;
        read_column(first_element, static_cast<std::size_t>(rows), sink.values + i, sink.stride);
      }
    }
  } else {
    read_rows(first_row, static_cast<std::size_t>(rows), sinks);
  }
  bytes_->finish();
}

bool StoredMatrix::read_floats(std::int64_t first_row, std::int64_t rows, std::int64_t columns, float* values) {
  if (!decoder_.is_float || fortran_order_) return false;
  const auto width = static_cast<std::size_t>(columns), all = static_cast<std::size_t>(this->columns());
  const std::size_t row_bytes = all * sizeof(float);
  const std::size_t most = std::max<std::size_t>(1, read_block_bytes / row_bytes);
  const auto count = static_cast<std::size_t>(rows);
  for (std::size_t done = 0; done < count; done += most, values += most * width) {
    const std::size_t now = std::min(most, count - done);
    const std::int64_t offset = (first_row + static_cast<std::int64_t>(done)) * static_cast<std::int64_t>(row_bytes);
    if (width == all) {
      bytes_->read_all(data_begin_ + offset, std::span(reinterpret_cast<char*>(values), now * row_bytes));
      continue;
    }
    const char* from = read_block(offset, now * row_bytes).data();
    for (std::size_t row = 0; row < now; ++row) {
      std::memcpy(values + row * width, from + row * row_bytes, width * sizeof(float));
    }
  }
  return true;
}

void StoredMatrix::will_need(std::int64_t first_row, std::int64_t rows) const {
  const std::int64_t row_bytes = columns() * static_cast<std::int64_t>(decoder_.element_bytes);
  if (!fortran_order_) bytes_->will_need(data_begin_ + first_row * row_bytes, rows * row_bytes);
}

std::span<const char> StoredMatrix::read_block(std::int64_t offset, std::size_t bytes) {
  if (block_.size() < bytes) block_.resize(bytes);
  const auto block = std::span(block_).first(bytes);
  bytes_->read_all(data_begin_ + offset, block);
  return block;
}

void StoredMatrix::read_column(std::int64_t first_element, std::size_t count, double* values, std::size_t stride) {
  const std::size_t most = read_block_bytes / decoder_.element_bytes;
  for (std::size_t done = 0; done < count; done += most) {
    const std::size_t now = std::min(most, count - done);
    const std::int64_t offset =
        (first_element + static_cast<std::int64_t>(done)) * static_cast<std::int64_t>(decoder_.element_bytes);
    decoder_.decode(read_block(offset, now * decoder_.element_bytes).data(), now, values + done * stride, stride);
  }
}

void StoredMatrix::read_rows(std::int64_t first_row, std::size_t count, const std::vector<ColumnSink>& sinks) {
  const std::size_t row_bytes = static_cast<std::size_t>(columns()) * decoder_.element_bytes;
  const std::size_t most = std::max<std::size_t>(1, read_block_bytes / row_bytes);
  for (std::size_t done = 0; done < count; done += most) {
    const std::size_t now = std::min(most, count - done);
    const std::int64_t offset = (first_row + static_cast<std::int64_t>(done)) * static_cast<std::int64_t>(row_bytes);
    const auto block = read_block(offset, now * row_bytes);
    for (const ColumnSink& to : sinks) {
      const char* from = block.data() + to.column * decoder_.element_bytes;
      double* values = to.values + done * to.stride;
      const bool whole_rows = to.count * decoder_.element_bytes == row_bytes && to.stride == to.count;
      if (whole_rows) {
        decoder_.decode(from, now * to.count, values, 1);
        continue;
      }
      for (std::size_t row = 0; row < now; ++row, from += row_bytes, values += to.stride) {
        decoder_.decode(from, to.count, values, 1);
      }
    }
  }
}

}  // namespace ddp
