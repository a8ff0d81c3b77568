#pragma once

#include <string>
#include <vector>

#include <linear_ddp/data/table.hpp>
#include <linear_ddp/launch/world.hpp>

/// What is done to a table after it was read.
namespace ddp {

/// Collective. Leaves out the rows with a gap (NaN), and tells how many they were.
void drop_gaps(const World& world, TableShare& share);

/// Collective. Puts the mean of a feature's values, of all ranks, into its gaps. Throws AgreedError for a feature that
/// has no value.
void fill_gaps(const World& world, TableShare& share);

/// Collective. Throws AgreedError when there are weights and none is above 0.
void require_weight(const World& world, const TableShare& share);

/// Adds the next file's rows of this rank to those of the files before. Throws UseError when its columns have other
/// names.
void append_file(TableShare& share, TableShare next);

/// The file of that name; or those that match the pattern, in natural order. Throws UseError when none does.
[[nodiscard]] std::vector<std::string> find_files(const std::string& path);

}  // namespace ddp
