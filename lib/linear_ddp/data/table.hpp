#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <linear_ddp/launch/world.hpp>

namespace ddp {

class FeatureSource;

/// What a target is: a number, or the name of a class (any text, a number's too).
enum class TargetKind { numbers, labels };

/// What becomes of a gap (an empty field, NA, NaN) in a selected column: an error, or the row is left out, or the
/// column's mean takes its place. A gap in a target or in a weight has no mean: only `drop` allows it.
enum class Missing { error, drop, mean };

/// Whether the features and the targets are in one file.
enum class Contents { both, features_only, targets_only };

/// Which columns of a table are features and which are targets. A column is given by its name, or as "#K" (K from 0).
/// Empty targets: the last column. Empty features: all columns that are nothing else.
struct ColumnSelection {
  std::vector<std::string> features = {}, targets = {};
  std::vector<std::string> excluded = {};  ///< columns that are no features
  std::string weights = {};                ///< the column of the rows' weights; empty: none
  TargetKind target_kind = TargetKind::numbers;
  Missing missing = Missing::error;
  Contents contents = Contents::both;  ///< targets only: the one column there is
  /// Features that can be read again may stay in their files, and sparse ones sparse: TableShare::source.
  bool leaves_features = false;
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

enum class FileFormat { by_extension, csv, tsv, npy, npz, safetensors, libsvm, hdf5 };

/// Which arrays of a file hold the features and the targets.
struct ArrayKeys {
  std::string x = "X", y = "y";
};

/// What is not for all formats.
struct FileOptions {
  FileFormat format = FileFormat::by_extension;
  ArrayKeys keys;            ///< npz, safetensors, hdf5
  bool zero_based = false;   ///< libsvm: indices start at 0
  std::string targets_file;  ///< npy or csv of one column, for npy, csv and tsv that then have features only
};

/// Rows [first, first + count) of a table.
struct RowRange {
  std::int64_t first = 0, count = 0;
};

/// One rank's rows of a table. Of one file: a contiguous share, [first_row, first_row + rows) of total_rows.
struct TableShare {
  std::vector<std::string> feature_names, target_names;
  std::int64_t total_rows = 0, first_row = 0, rows = 0;
  std::vector<double> features;           ///< [rows, feature_names.size()], row-major; empty with a source
  std::vector<double> targets;            ///< [rows, target_names.size()], row-major; with labels: indices into them
  std::string path;                       ///< where it was read from, for messages; may be empty
  std::vector<double> weights;            ///< [rows], or empty: all 1
  std::vector<std::string> labels;        ///< the classes; a reader leaves it empty where targets are numbers
  std::vector<RowRange> pieces;           ///< where the rows are, one range a file; empty: one, from first_row on
  std::vector<std::string> notices;       ///< what a person should know; the same on all ranks
  std::shared_ptr<FeatureSource> source;  ///< of the whole table's features, where they are not in `features`

  /// Where this rank's rows are in the table, in their order.
  [[nodiscard]] std::vector<RowRange> ranges() const;
};

/// The first name that was there before.
[[nodiscard]] std::optional<std::string> repeated_name(const std::vector<std::string>& names);

/// Collective. Each rank reads and parses only its share of the file. Throws AgreedError: file, line (or byte), column
/// with its name, the offending text, what was expected. Gaps that `selection.missing` allows are NaN in the share.
/// (Features that stay in their files are looked at when they are read.)
[[nodiscard]] TableShare read_text_table(const World& world, const std::string& path, const TextFormat& format,
                                         const ColumnSelection& selection);
[[nodiscard]] TableShare read_npy_table(const World& world, const std::string& path, const ColumnSelection& selection);

/// Collective. [x | y]: columns are named after the keys, "X#0", "X#1", …, and "y" when it has but one. The targets are
/// y's columns unless `selection` has others. Throws AgreedError that lists the keys when one is not there.
[[nodiscard]] TableShare read_safetensors_table(const World& world, const std::string& path, const ArrayKeys& keys,
                                                const ColumnSelection& selection);
/// The same for NumPy's archives of arrays. The CRC-32 of what is read is checked.
[[nodiscard]] TableShare read_npz_table(const World& world, const std::string& path, const ArrayKeys& keys,
                                        const ColumnSelection& selection);

/// The same for HDF5; keys may lead through groups, "grp/y". Throws AgreedError in a build without HDF5.
[[nodiscard]] TableShare read_hdf5_table(const World& world, const std::string& path, const ArrayKeys& keys,
                                         const ColumnSelection& selection);

struct LibsvmFormat {
  bool zero_based = false;    ///< indices start at 0
  std::int64_t features = 0;  ///< 0: as many as the highest index of all ranks' rows tells
};

/// Collective. "label index:value …" lines; of several files, one behind the other. The features are named by their
/// indices. A value that is not given is 0: the table's source holds the others where that takes less memory and
/// `leaves_features` allows it. `qid:` is ignored, with a notice. Throws AgreedError for an index beyond the features.
[[nodiscard]] TableShare read_libsvm_table(const World& world, const std::vector<std::string>& files,
                                           const LibsvmFormat& format = {}, bool leaves_features = false);

/// By the file's format; `text` is for csv and tsv (a delimiter of 0: by format, then by extension).
///
/// A path with * ? or [ that is no file's name stands for all files it matches, in natural order (part-2 before
/// part-10): their rows follow each other, and their columns must have the same names. Gaps are dealt with, and labels
/// are the classes of all ranks.
[[nodiscard]] TableShare read_table(const World& world, const std::string& path, const TextFormat& text,
                                    const ColumnSelection& selection, const FileOptions& options = {});

/// What the file's extension stands for; nothing for an unknown one.
[[nodiscard]] std::optional<FileFormat> format_of(const std::string& path);

}  // namespace ddp
