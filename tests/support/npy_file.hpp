#pragma once

#include <string>
#include <vector>

#include "support/bytes_of.hpp"

namespace ddp::test {

/// A .npy file with this header and these data.
inline std::string npy(const std::string& literal, const std::string& data, char version = 1) {
  std::string length{static_cast<char>(literal.size() & 0xFF), static_cast<char>(literal.size() >> 8)};
  if (version > 1) length += std::string(2, '\0');
  return "\x93NUMPY" + std::string{version, '\0'} + length + literal + data;
}

/// 100 001 x 3 doubles: each of four ranks reads more than one block of 256 KiB, also of a single column.
struct LongArray {
  static constexpr std::size_t rows = 100'001, columns = 3;
  std::vector<double> by_row, by_column;
  std::vector<double> column_1, columns_2_and_0;  ///< the latter by row

  LongArray() {
    const auto value = [](std::size_t row, std::size_t column) { return static_cast<double>(10 * row + column); };
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) by_row.push_back(value(row, column));
      columns_2_and_0.insert(columns_2_and_0.end(), {value(row, 2), value(row, 0)});
      column_1.push_back(value(row, 1));
    }
    for (std::size_t column = 0; column < columns; ++column) {
      for (std::size_t row = 0; row < rows; ++row) by_column.push_back(value(row, column));
    }
  }
};

}  // namespace ddp::test
