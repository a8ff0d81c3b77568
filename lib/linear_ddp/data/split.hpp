#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linear_ddp/data/table.hpp>

/// Tables that belong to another one: rows held back from it, or read with its classes.
namespace ddp {

/// Which of the rows are held back: the last of torch.randperm(rows) with the seed, `fraction` of them, rounded up.
/// Every rank knows them, whichever rows it has. Throws UseError when none would be left, or none held back.
[[nodiscard]] std::vector<bool> held_back_rows(std::int64_t rows, double fraction, std::uint64_t seed);

/// Takes the marked rows of the table out of this rank's share, and returns them; in both they keep their order.
[[nodiscard]] TableShare take_rows(TableShare& share, const std::vector<bool>& rows_of_table);

/// Turns targets of the share's own labels into indices into `classes`: the same text, or the same number. Throws
/// UseError for a label that none of them is; every rank has the same labels.
void use_classes(TableShare& share, const std::vector<std::string>& classes);

}  // namespace ddp
