#include <linear_ddp/data/row_parser.hpp>

#include <fmt/format.h>

#include <cmath>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/field_splitter.hpp>

namespace ddp {
namespace {

std::string complaint(std::string_view field, NumberFault fault, char decimal) {
  const std::string shown = excerpt(field);
  switch (fault) {
    case NumberFault::missing:
      return fmt::format("missing value {}; complete the row or remove it", shown);
    case NumberFault::not_finite:
      return fmt::format("{} is not finite; complete the row or remove it", shown);
    case NumberFault::out_of_range:
      return fmt::format("{} is out of range: the largest number is 1.797e308", shown);
    default:
      break;
  }
  std::string hint;
  if (decimal == '.' && field.find(',') != field.npos) {
    hint = "; if a comma is the decimal sign here, set it, and the delimiter with it; if it groups digits, remove it";
  } else if (decimal == ',' && field.find('.') != field.npos) {
    hint = "; the decimal sign is set to a comma";
  }
  return fmt::format("{} is not a number{}", shown, hint);
}

}  // namespace

RowParser::RowParser(const std::string& path, const TextHead& head, const TextFormat& format,
                     const SelectedColumns& columns, TableShare& share)
    : path_(path), head_(head), format_(format), share_(share), slots_(head.names.size(), -1) {
  std::int64_t slot = 0;
  for (const auto column : columns.features) slots_[static_cast<std::size_t>(column)] = slot++;
  features_ = slot;
  for (const auto column : columns.targets) slots_[static_cast<std::size_t>(column)] = slot++;
  row_.resize(static_cast<std::size_t>(slot));
}

void RowParser::parse(const Record& record) {
  if (record.quoted || !parse_plain(record.text)) {
    if (trimmed(record.text, format_.delimiter).empty()) return;
    parse_carefully(record);
  }
  share_.features.insert(share_.features.end(), row_.begin(), row_.begin() + features_);
  share_.targets.insert(share_.targets.end(), row_.begin() + features_, row_.end());
  ++share_.rows;
}

/// Most records have nothing but numbers and delimiters: these are read without looking at a byte twice. False for all
/// others, right or wrong.
bool RowParser::parse_plain(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t column = 0; column < slots_.size(); ++column) {
    const char* stop = at;
    if (slots_[column] < 0) {
      while (stop != end && *stop != format_.delimiter) ++stop;
    } else {
      double& value = row_[static_cast<std::size_t>(slots_[column])];
      stop = parse_leading_number(at, end, format_.decimal, value);
      if (stop == nullptr || !std::isfinite(value)) return false;
    }
    if (stop == end) return column + 1 == slots_.size() && !head_.trailing_delimiter;
    if (*stop != format_.delimiter) return false;
    at = stop + 1;
  }
  return false;
}

void RowParser::parse_carefully(const Record& record) {
  FieldSplitter splitter(record, format_.delimiter);
  std::string_view field;
  std::size_t column = 0;
  Faulty first;
  for (; splitter.next(field); ++column) {
    if (column >= slots_.size() || slots_[column] < 0) continue;
    const auto [value, fault] = parse_number(field, format_.decimal);
    row_[static_cast<std::size_t>(slots_[column])] = value;
    if (first.fault == NumberFault::none) first = {column, field, fault};
  }
  if (splitter.fault()) throw UseError(fmt::format("{}, line {}: there is {}", path_, record.line, splitter.fault()));
  const bool surplus = column == slots_.size() + 1 && field.empty();
  if (head_.trailing_delimiter ? !surplus : column != slots_.size()) refuse_count(record, column, field.empty());
  if (first.fault != NumberFault::none) refuse_number(record, first);
}

void RowParser::refuse_count(const Record& record, std::size_t fields, bool last_is_empty) const {
  const bool trailing = head_.trailing_delimiter;
  throw UseError(fmt::format(
      "{}, line {}: got {} fields, expected {}{}", path_, record.line, fields - (trailing && last_is_empty ? 1 : 0),
      slots_.size(),
      trailing ? fmt::format(" and a delimiter behind them, as in line {}", head_.first_row_line) : std::string{}));
}

void RowParser::refuse_number(const Record& record, const Faulty& faulty) const {
  throw UseError(fmt::format("{}, line {}, column {} ({}): {}", path_, record.line, faulty.column + 1,
                             excerpt(head_.names[faulty.column]),
                             complaint(faulty.field, faulty.fault, format_.decimal)));
}

}  // namespace ddp
