#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/npy_header.hpp>
#include <linear_ddp/data/table.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/launch/agree.hpp>

namespace ddp {
namespace {

std::vector<std::string> numbered_names(std::int64_t columns) {
  std::vector<std::string> names;
  for (std::int64_t column = 0; column < columns; ++column) names.push_back(fmt::format("#{}", column));
  return names;
}

struct OpenTable {
  OpenTable(const std::string& path, const ColumnSelection& selection) : file(path), header(read_npy_header(file)) {
    if (header.shape.size() != 2) {
      throw UseError(
          fmt::format("{}: the array's shape is {}; a table's is (rows, columns)", path, shape_text(header.shape)));
    }
    require_size();
    if (rows() == 0)
      throw UseError(fmt::format("{}: no data rows: the array's shape is {}", path, shape_text(header.shape)));
    if (columns() == 0)
      throw UseError(fmt::format("{}: no columns: the array's shape is {}", path, shape_text(header.shape)));
    names = numbered_names(columns());
    selected = select_columns_of(file, names, selection);
  }

  [[nodiscard]] std::int64_t rows() const { return header.shape[0]; }
  [[nodiscard]] std::int64_t columns() const { return header.shape[1]; }

  void require_size() const {
    std::int64_t expected = 0;
    const bool overflow =
        __builtin_mul_overflow(rows(), columns(), &expected) ||
        __builtin_mul_overflow(expected, static_cast<std::int64_t>(header.decoder.element_bytes), &expected);
    const std::int64_t found = file.size() - header.data_begin;
    if (!overflow && expected == found) return;
    throw UseError(fmt::format("{}: expected {} data bytes for shape {} of {}, file has {}; is it complete?",
                               file.path(), overflow ? "more than 2^63" : std::to_string(expected),
                               shape_text(header.shape), header.type, found));
  }

  InputFile file;
  NpyHeader header;
  std::vector<std::string> names;
  SelectedColumns selected;
};

/// Where a selected column's values go: rows are `stride` doubles apart.
struct Destination {
  std::size_t column;
  double* values;
  std::size_t stride;
};

std::vector<Destination> destinations(const SelectedColumns& selected, TableShare& share) {
  std::vector<Destination> all;
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

/// Reads `rows` pieces of `row_bytes` from `offset` on, in blocks of whole pieces, and decodes columns out of them.
void read_rows(const OpenTable& table, std::int64_t offset, std::size_t row_bytes, std::size_t rows,
               std::vector<Destination> columns) {
  const std::size_t block_rows = std::min(rows, std::max<std::size_t>(1, read_block_bytes / row_bytes));
  std::vector<char> buffer(block_rows * row_bytes);
  for (std::size_t done = 0; done < rows; done += block_rows) {
    const std::size_t now = std::min(block_rows, rows - done);
    const auto block = std::span(buffer).first(now * row_bytes);
    table.file.read_all(offset + static_cast<std::int64_t>(done * row_bytes), block);
    for (Destination& to : columns) {
      table.header.decoder.decode(block.data() + to.column * table.header.decoder.element_bytes, row_bytes, now,
                                  to.values, to.stride);
      to.values += now * to.stride;
    }
  }
}

TableShare read_share(const OpenTable& table, const ColumnSelection& selection, std::int64_t first_row,
                      std::int64_t end_row) {
  TableShare share = empty_share(table.file, table.names, table.selected);
  share.first_row = first_row;
  share.rows = end_row - first_row;
  const auto rows = static_cast<std::size_t>(share.rows);
  share.features.resize(rows * share.feature_names.size());
  share.targets.resize(rows * share.target_names.size());
  share.weights.resize(rows * table.selected.weights.size());

  const auto element_bytes = static_cast<std::int64_t>(table.header.decoder.element_bytes);
  if (table.header.fortran_order) {
    for (Destination to : destinations(table.selected, share)) {
      const std::int64_t first_element = static_cast<std::int64_t>(to.column) * table.rows() + first_row;
      to.column = 0;
      read_rows(table, table.header.data_begin + first_element * element_bytes, table.header.decoder.element_bytes,
                rows, {to});
    }
  } else {
    const std::int64_t row_bytes = table.columns() * element_bytes;
    read_rows(table, table.header.data_begin + first_row * row_bytes, static_cast<std::size_t>(row_bytes), rows,
              destinations(table.selected, share));
  }
  require_usable(share, table.selected, selection);
  return share;
}

}  // namespace

TableShare read_npy_table(const World& world, const std::string& path, const ColumnSelection& selection) {
  const auto table = agree(world, [&] { return std::make_unique<OpenTable>(path, selection); });
  require_same_size(world, table->file);
  TableShare share = agree(world, [&] {
    return read_share(*table, selection, share_begin(table->rows(), world.rank(), world.size()),
                      share_begin(table->rows(), world.rank() + 1, world.size()));
  });
  place_share(world, share);
  return share;
}

}  // namespace ddp
