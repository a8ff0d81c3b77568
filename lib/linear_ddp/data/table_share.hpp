#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linear_ddp/data/input_file.hpp>
#include <linear_ddp/data/table.hpp>

namespace ddp {

/// Where a rank's share of n things begins; rank + 1 gives its end. The same as n * rank / size, without overflow.
[[nodiscard]] constexpr std::int64_t share_begin(std::int64_t n, int rank, int size) {
  return n / size * rank + n % size * rank / size;
}

/// select_columns, whose errors then name the file.
[[nodiscard]] SelectedColumns select_columns_of(const InputFile& file, const std::vector<std::string>& names,
                                                const ColumnSelection& selection);

/// A share without rows.
[[nodiscard]] TableShare empty_share(const InputFile& file, const std::vector<std::string>& names,
                                     const SelectedColumns& columns);

/// Throws UseError for a value that no row may have: one that is not finite, unless it is a NaN that
/// `selection.missing` provides for; a negative weight. For arrays: rows and columns are counted from 0.
void require_usable(const TableShare& share, const SelectedColumns& columns, const ColumnSelection& selection);

/// Leaves only the rows that stay in values[rows, columns], in their order; returns the others.
std::vector<double> take_rows(std::vector<double>& values, const std::vector<bool>& stays);

/// Collective. Throws AgreedError when the ranks see files of different sizes, whose shares would not fit together.
void require_same_size(const World& world, const InputFile& file);

/// Collective. Gives the share the targets of its rows, one column. Throws AgreedError unless they have as many rows.
void take_targets(const World& world, TableShare& share, const TableShare& targets);

/// Collective. Fills in where the share is in the table.
void place_share(const World& world, TableShare& share);

}  // namespace ddp
