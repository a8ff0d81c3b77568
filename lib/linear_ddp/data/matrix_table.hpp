#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <linear_ddp/data/matrix.hpp>
#include <linear_ddp/data/table_share.hpp>

namespace ddp {

/// A file whose table is a matrix.
struct MatrixTable {
  explicit MatrixTable(const std::string& path) : file(path) {}

  InputFile file;
  std::unique_ptr<Matrix> matrix;  ///< may read from `file`
  std::vector<std::string> names;  ///< of its columns
  SelectedColumns selected;
};

/// Collective. `open` gives the table its matrix and its columns, on each rank.
[[nodiscard]] std::unique_ptr<MatrixTable> open_matrix_table(const World& world, const std::string& path,
                                                             const std::function<void(MatrixTable&)>& open);

/// The matrix's columns are "#0", "#1", ….
void take_matrix(MatrixTable& table, std::unique_ptr<Matrix> matrix, const ColumnSelection& selection);

/// The array of a key.
using OpenMatrix = std::function<std::unique_ptr<Matrix>(const std::string& key)>;

/// [x | y]: the columns of x are named after its key, "X#0", "X#1", …, or "X" when there is but one, and so are y's,
/// which are the targets unless the selection has others; y is not asked for where features are all that is wanted.
/// Throws UseError when their numbers of rows differ.
void take_matrices(MatrixTable& table, const OpenMatrix& open, const ArrayKeys& keys, const ColumnSelection& selection);

/// Collective. Every rank reads its share of the rows.
[[nodiscard]] TableShare read_matrix_table(const World& world, std::unique_ptr<MatrixTable> table,
                                           const ColumnSelection& selection);

/// " ; it has 'a', 'b'", or "; did you mean 'a'?": what follows a key that is not there.
[[nodiscard]] std::string key_suggestion(const std::string& wanted, const std::vector<std::string>& keys);

}  // namespace ddp
