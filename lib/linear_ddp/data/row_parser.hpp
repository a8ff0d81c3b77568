#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <linear_ddp/data/number.hpp>
#include <linear_ddp/data/record_reader.hpp>
#include <linear_ddp/data/table.hpp>
#include <linear_ddp/data/text_head.hpp>

namespace ddp {

/// Turns records into rows at the end of a share. What it is made of must outlive it.
class RowParser {
 public:
  RowParser(const std::string& path, const TextHead& head, const TextFormat& format, const SelectedColumns& columns,
            TableShare& share);

  /// Ignores a blank record. Throws UseError naming line and column.
  void parse(const Record& record);

 private:
  struct Faulty {
    std::size_t column = 0;
    std::string_view field;
    NumberFault fault = NumberFault::none;
  };

  bool parse_plain(std::string_view text);
  void parse_carefully(const Record& record);
  [[noreturn]] void refuse_count(const Record& record, std::size_t fields, bool last_is_empty) const;
  [[noreturn]] void refuse_number(const Record& record, const Faulty& faulty) const;

  const std::string& path_;
  const TextHead& head_;
  const TextFormat& format_;
  TableShare& share_;
  std::vector<std::int64_t> slots_;  ///< of each column: its place in row_, -1 when it isn't selected
  std::vector<double> row_;          ///< features, then targets
  std::int64_t features_;
};

}  // namespace ddp
