#include <fmt/format.h>

#include <memory>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/matrix_table.hpp>
#include <linear_ddp/data/npy_header.hpp>
#include <linear_ddp/data/table.hpp>

namespace ddp {

TableShare read_npy_table(const World& world, const std::string& path, const ColumnSelection& selection) {
  auto table = open_matrix_table(world, path, [&](MatrixTable& opened) {
    auto bytes = std::make_unique<FilePart>(path, opened.file, 0, opened.file.size());
    const ArrayLayout layout = read_npy_header(*bytes);
    if (layout.shape.size() == 1 && selection.contents != Contents::targets_only) {
      throw UseError(
          fmt::format("{}: the array's shape is {}; a table's is (rows, columns)", path, shape_text(layout.shape)));
    }
    take_matrix(opened, std::make_unique<StoredMatrix>(std::move(bytes), layout), selection);
  });
  return read_matrix_table(world, std::move(table), selection);
}

}  // namespace ddp
