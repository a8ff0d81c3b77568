#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linear_ddp/data/record_reader.hpp>

namespace ddp {

struct SparseValue {
  std::int64_t index;
  double value;
};

/// Rows of which only some values are given.
struct SparseRows {
  std::vector<double> labels;
  std::vector<std::size_t> ends;    ///< of each row's values
  std::vector<SparseValue> values;  ///< within a row by index
  std::int64_t highest = -1;        ///< index
  bool has_query_ids = false;
};

/// Turns lines "label index:value index:value … # comment" into rows at the end of `rows`. What it is made of must
/// outlive it.
class LibsvmParser {
 public:
  LibsvmParser(const std::string& path, bool zero_based, SparseRows& rows)
      : path_(path), zero_based_(zero_based), rows_(rows) {}

  /// Ignores a line without a label. Throws UseError naming the line.
  void parse(const Record& line);

 private:
  double label(const Record& line, std::string_view word) const;
  SparseValue value(const Record& line, std::string_view word) const;
  void sort_last_row(const Record& line, std::size_t begin);
  [[noreturn]] void refuse(const Record& line, const std::string& what) const;

  const std::string& path_;
  bool zero_based_;
  SparseRows& rows_;
};

}  // namespace ddp
