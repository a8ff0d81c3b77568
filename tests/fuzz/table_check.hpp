#pragma once

#include <string>

#include <linear_ddp/data/table.hpp>
#include "fuzz/input.hpp"

namespace ddp::fuzz {

/// A way to read a table.
struct Reading {
  TextFormat text = {};
  ColumnSelection selection = {};
  FileOptions file = {};
};

/// Sets what all formats have: gaps, labels, weights and the selected columns. No choices: the defaults.
void choose_columns(Choices& choices, ColumnSelection& selection);

/// Reads the table on one rank and on several. Ends the program unless every rank refuses it as wrong use, or it is
/// read: the shares have the sizes they say, their values can be trained on, and the ranks' shares, one behind the
/// other, are what one rank reads.
void check_table(const std::string& path, Choices& choices, const Reading& reading);

}  // namespace ddp::fuzz
