#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// Which columns of a table are features and which are targets. A column is given by its name, or as "#K" (K from 0).
/// Empty targets: the last column. Empty features: all columns that are not targets.
struct ColumnSelection {
  std::vector<std::string> features, targets;
};

/// The selection carried out: column numbers in the order in which they were asked for.
struct SelectedColumns {
  std::vector<std::int64_t> features, targets;
};

/// Throws UseError naming the column: unknown (with the nearest known name), ambiguous (a name that occurs twice and is
/// asked for), out of range, given as feature and target, no feature left.
[[nodiscard]] SelectedColumns select_columns(const std::vector<std::string>& names, const ColumnSelection& selection);

enum class Header { automatic, yes, no };

struct TextFormat {
  /// Automatic: the first record is a header when a field is neither a number nor a gap (nothing, NA, …). Refused: a
  /// first record whose first field is empty and which has no such field.
  Header header = Header::automatic;
  char delimiter = 0;  ///< 0: by extension, a comma but for .tsv
  char decimal = '.';
};

/// One rank's rows of a table: a contiguous share, [first_row, first_row + rows) of total_rows.
struct TableShare {
  std::vector<std::string> feature_names, target_names;
  std::int64_t total_rows = 0, first_row = 0, rows = 0;
  std::vector<double> features;  ///< [rows, feature_names.size()], row-major
  std::vector<double> targets;   ///< [rows, target_names.size()], row-major
  std::string path;              ///< where it was read from, for messages; may be empty
};

/// Collective. Each rank reads and parses only its share of the file. Throws AgreedError: file, line (or byte), column
/// with its name, the offending text, what was expected.
[[nodiscard]] TableShare read_text_table(const World& world, const std::string& path, const TextFormat& format,
                                         const ColumnSelection& selection);
[[nodiscard]] TableShare read_npy_table(const World& world, const std::string& path, const ColumnSelection& selection);

/// By the file's extension: .csv, .tsv (tab), .npy; `text` is for csv and tsv (a delimiter of 0: by extension).
[[nodiscard]] TableShare read_table(const World& world, const std::string& path, const TextFormat& text,
                                    const ColumnSelection& selection);

}  // namespace ddp
