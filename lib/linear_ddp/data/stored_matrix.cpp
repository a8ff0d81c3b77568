#include <linear_ddp/data/stored_matrix.hpp>

#include <fmt/format.h>

#include <algorithm>
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
  const auto element_bytes = static_cast<std::int64_t>(decoder_.element_bytes);
  const auto count = static_cast<std::size_t>(rows);
  if (fortran_order_) {
    // The bytes come from the front to the back.
    std::sort(sinks.begin(), sinks.end(), [](const auto& a, const auto& b) { return a.column < b.column; });
    for (ColumnSink sink : sinks) {
      const std::int64_t first_element = static_cast<std::int64_t>(sink.column) * this->rows() + first_row;
      sink.column = 0;
      read_pieces(data_begin_ + first_element * element_bytes, decoder_.element_bytes, count, {sink});
    }
  } else {
    const std::int64_t row_bytes = columns() * element_bytes;
    read_pieces(data_begin_ + first_row * row_bytes, static_cast<std::size_t>(row_bytes), count, std::move(sinks));
  }
  bytes_->finish();
}

/// Reads pieces of rows from `offset` on, in blocks of whole pieces, and decodes columns out of them.
void StoredMatrix::read_pieces(std::int64_t offset, std::size_t piece_bytes, std::size_t pieces,
                               std::vector<ColumnSink> sinks) {
  const std::size_t block_pieces = std::min(pieces, std::max<std::size_t>(1, read_block_bytes / piece_bytes));
  std::vector<char> buffer(block_pieces * piece_bytes);
  for (std::size_t done = 0; done < pieces; done += block_pieces) {
    const std::size_t now = std::min(block_pieces, pieces - done);
    const auto block = std::span(buffer).first(now * piece_bytes);
    bytes_->read_all(offset + static_cast<std::int64_t>(done * piece_bytes), block);
    for (ColumnSink& to : sinks) {
      decoder_.decode(block.data() + to.column * decoder_.element_bytes, piece_bytes, now, to.values, to.stride);
      to.values += now * to.stride;
    }
  }
}

}  // namespace ddp
