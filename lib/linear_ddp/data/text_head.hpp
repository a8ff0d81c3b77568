#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linear_ddp/data/input_file.hpp>
#include <linear_ddp/data/table.hpp>

namespace ddp {

/// What every rank must know of a text table before it reads its rows.
struct TextHead {
  std::vector<std::string> names;
  bool trailing_delimiter = false;  ///< each row ends with a delimiter: one empty field more than there are columns
  std::int64_t first_row_line = 0;
  std::int64_t data_begin = 0;  ///< byte behind the header and its line end …
  std::int64_t data_line = 1;   ///< … and its line
};

/// Reads the header and the first row. Throws UseError for an empty table, for UTF-16, for names that are not UTF-8,
/// and for a first record that may be a header or a row (of the selection, only what its target is counts here).
[[nodiscard]] TextHead read_text_head(const InputFile& file, const TextFormat& format,
                                      const ColumnSelection& selection = {});

/// The format with its defaults filled in. Throws UseError for a delimiter or a decimal sign that cannot be one.
[[nodiscard]] TextFormat complete_format(TextFormat format, const std::string& path);

}  // namespace ddp
