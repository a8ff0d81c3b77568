#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// What a target is: a number, or the name of a class (any text, a number's too). None: every column that is nothing
/// else is a feature.
enum class TargetKind { numbers, labels, none };

/// What becomes of a gap (an empty field, NA, NaN) in a selected column: an error, or the row is left out, or the
/// column's mean takes its place. A gap in a target or in a weight has no mean: only `drop` allows it.
enum class Missing { error, drop, mean };

/// Which columns of a table are features and which are targets. A column is given by its name, or as "#K" (K from 0).
/// Empty targets: the last column, or with TargetKind::none no column. Empty features: all columns that are nothing
/// else.
struct ColumnSelection {
  std::vector<std::string> features = {}, targets = {};
  std::vector<std::string> excluded = {};  ///< columns that are no features
  std::string weights = {};                ///< the column of the rows' weights; empty: none
  TargetKind target_kind = TargetKind::numbers;
  Missing missing = Missing::error;
};

/// The selection carried out: column numbers in the order in which they were asked for.
struct SelectedColumns {
  std::vector<std::int64_t> features, targets;
  std::vector<std::int64_t> weights = {};  ///< one, or none
};

/// Throws UseError naming the column: unknown (with the nearest known name), ambiguous (a name that occurs twice and is
/// asked for), out of range, asked for as two things, no feature left; several targets that are labels.
[[nodiscard]] SelectedColumns select_columns(const std::vector<std::string>& names, const ColumnSelection& selection);

enum class Header { automatic, yes, no };

struct TextFormat {
  /// Automatic: the first record is a header when a field is neither a number nor a gap (nothing, NA, …). Refused: a
  /// first record whose first field is empty and which has no such field.
  Header header = Header::automatic;
  char delimiter = 0;  ///< 0: by extension, a comma but for .tsv
  char decimal = '.';
};

/// Rows [first, first + count) of a table.
struct RowRange {
  std::int64_t first = 0, count = 0;
};

/// One rank's rows of a table. Of one file: a contiguous share, [first_row, first_row + rows) of total_rows.
struct TableShare {
  std::vector<std::string> feature_names, target_names;
  std::int64_t total_rows = 0, first_row = 0, rows = 0;
  std::vector<double> features;      ///< [rows, feature_names.size()], row-major
  std::vector<double> targets;       ///< [rows, target_names.size()], row-major; with labels: indices into them
  std::string path;                  ///< where it was read from, for messages; may be empty
  std::vector<double> weights;       ///< [rows], or empty: all 1
  std::vector<std::string> labels;   ///< the classes; a reader leaves it empty where targets are numbers
  std::vector<RowRange> pieces;      ///< where the rows are, one range a file; empty: one, from first_row on
  std::vector<std::string> notices;  ///< what a person should know; the same on all ranks
};

/// Collective. Each rank reads and parses only its share of the file. Throws AgreedError: file, line (or byte), column
/// with its name, the offending text, what was expected. Gaps that `selection.missing` allows are NaN in the share.
[[nodiscard]] TableShare read_text_table(const World& world, const std::string& path, const TextFormat& format,
                                         const ColumnSelection& selection);
[[nodiscard]] TableShare read_npy_table(const World& world, const std::string& path, const ColumnSelection& selection);

/// By the file's extension: .csv, .tsv (tab), .npy; `text` is for csv and tsv (a delimiter of 0: by extension).
///
/// A path with * ? or [ that is no file's name stands for all files it matches, in natural order (part-2 before
/// part-10): their rows follow each other, and their columns must have the same names. Gaps are dealt with, and labels
/// are the classes of all ranks.
[[nodiscard]] TableShare read_table(const World& world, const std::string& path, const TextFormat& text,
                                    const ColumnSelection& selection);

}  // namespace ddp
