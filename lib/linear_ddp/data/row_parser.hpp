#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <linear_ddp/data/complaints.hpp>
#include <linear_ddp/data/labels.hpp>
#include <linear_ddp/data/record_reader.hpp>
#include <linear_ddp/data/table.hpp>
#include <linear_ddp/data/text_head.hpp>

namespace ddp {

/// Turns records into rows at the end of a share. What it is made of must outlive it.
class RowParser {
 public:
  RowParser(const std::string& path, const TextHead& head, const TextFormat& format, const SelectedColumns& columns,
            const ColumnSelection& selection, TableShare& share);

  /// Ignores a blank record, and one that is wrong, but not for ever. False when enough is wrong to stop.
  bool parse(const Record& record);
  /// What could not even become a record.
  void complain(const std::string& message);
  /// To be called after the last record. Throws UseError naming lines and columns of what was wrong.
  void finish();

 private:
  struct Faulty {
    std::size_t column = 0;
    std::string_view field;
    RowFault fault = RowFault::none;
  };

  bool find_ends(std::string_view text);
  bool parse_plain(std::string_view text);
  bool parse_carefully(const Record& record);
  /// The value of a field, NaN for a gap that is allowed.
  double parse_value(std::string_view field, bool doubled_quotes, std::int64_t slot, RowFault& fault);
  void refuse_count(const Record& record, std::size_t fields, bool last_is_empty);
  void refuse_value(const Record& record, const Faulty& faulty);

  const std::string& path_;
  const TextHead& head_;
  const TextFormat& format_;
  TableShare& share_;
  std::vector<std::int64_t> slots_;  ///< of each column: its place in row_, -1 when it isn't selected
  std::vector<std::size_t> ends_;    ///< of a record's fields
  std::vector<double> row_;          ///< features, then targets, then the weight
  std::int64_t features_, targets_;  ///< where each of them ends
  std::int64_t label_slot_ = -1;     ///< the target's, when it is a label
  std::int64_t gaps_end_ = 0;        ///< slots before it may have gaps
  LabelList labels_;
  Complaints complaints_;
};

}  // namespace ddp
