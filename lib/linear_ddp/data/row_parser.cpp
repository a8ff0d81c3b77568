#include <linear_ddp/data/row_parser.hpp>

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>

#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/field_splitter.hpp>
#include <linear_ddp/data/number.hpp>
#include <linear_ddp/data/plain_number.hpp>
#include <linear_ddp/data/utf8.hpp>

namespace ddp {
namespace {

static_assert(record_padding >= 64 && record_padding >= plain_number_padding);

/// Of the 64 characters at a place those that are the wanted one: the first is bit 0.
std::uint64_t equal_among_64(const char* at, char wanted) {
  constexpr std::uint64_t ones = 0x0101010101010101, low = 0x7F7F7F7F7F7F7F7F;
  const std::uint64_t pattern = ones * static_cast<unsigned char>(wanted);
  std::uint64_t found = 0;
  for (unsigned part = 0; part < 8; ++part) {
    std::uint64_t eight;
    std::memcpy(&eight, at + 8 * part, sizeof eight);
    eight ^= pattern;
    const std::uint64_t equal = ~(((eight & low) + low) | eight | low) >> 7;  // 1 in each byte that is 0
    // The factor brings each of the eight bits to its place in the top byte, with no two meeting anywhere.
    found |= (equal * 0x0102040810204080) >> 56 << (8 * part);
  }
  return found;
}

static_assert(static_cast<int>(RowFault::not_a_number) == static_cast<int>(NumberFault::not_a_number));

std::string complaint(std::string_view field, RowFault fault, char decimal) {
  const std::string shown = excerpt(field);
  switch (fault) {
    case RowFault::missing:
      return fmt::format("missing value {}; complete the row or remove it", shown);
    case RowFault::not_finite:
      return fmt::format("{} is not finite; complete the row or remove it", shown);
    case RowFault::out_of_range:
      return fmt::format("{} is out of range: the largest number is 1.797e308", shown);
    case RowFault::negative_weight:
      return fmt::format("the weight {} is negative", shown);
    case RowFault::not_utf8:
      return fmt::format("the label {} is not UTF-8; convert the file with iconv, from latin1 perhaps", shown);
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
                     const SelectedColumns& columns, const ColumnSelection& selection, TableShare& share)
    : path_(path), head_(head), format_(format), share_(share), slots_(head.names.size(), -1) {
  std::int64_t slot = 0;
  for (const auto column : columns.features) slots_[static_cast<std::size_t>(column)] = slot++;
  features_ = slot;
  for (const auto column : columns.targets) slots_[static_cast<std::size_t>(column)] = slot++;
  targets_ = slot;
  for (const auto column : columns.weights) slots_[static_cast<std::size_t>(column)] = slot++;
  row_.resize(static_cast<std::size_t>(slot));
  ends_.resize(slots_.size());
  if (selection.target_kind == TargetKind::labels) label_slot_ = features_;
  if (selection.missing == Missing::drop) gaps_end_ = slot;
  if (selection.missing == Missing::mean) gaps_end_ = features_;
}

bool RowParser::parse(const Record& record) {
  if (record.quoted || !parse_plain(record.text)) {
    if (trimmed(record.text, format_.delimiter).empty()) return true;
    if (!parse_carefully(record)) return !complaints_.enough();
  }
  share_.features.insert(share_.features.end(), row_.begin(), row_.begin() + features_);
  share_.targets.insert(share_.targets.end(), row_.begin() + features_, row_.begin() + targets_);
  share_.weights.insert(share_.weights.end(), row_.begin() + targets_, row_.end());
  ++share_.rows;
  return true;
}

void RowParser::complain(const std::string& message) {
  complaints_.add(RowFault::unreadable, [&] { return message; });
}

void RowParser::finish() {
  complaints_.require_none();
  share_.labels = labels_.take();
}

/// False unless there are as many fields as columns.
bool RowParser::find_ends(std::string_view text) {
  std::size_t fields = 0;
  for (std::size_t offset = 0; offset < text.size(); offset += 64) {
    std::uint64_t found = equal_among_64(text.data() + offset, format_.delimiter);
    if (text.size() - offset < 64) found &= (std::uint64_t{1} << (text.size() - offset)) - 1;
    for (; found != 0; found &= found - 1) {
      if (fields + 1 == slots_.size()) return false;
      ends_[fields++] = offset + static_cast<std::size_t>(std::countr_zero(found));
    }
  }
  ends_[fields++] = text.size();
  return fields == slots_.size() && !head_.trailing_delimiter;
}

/// Most records have nothing but numbers and delimiters. False for all others, right or wrong.
bool RowParser::parse_plain(std::string_view text) {
  // The ends of all fields first: then the processor works on several numbers at once, for none waits for another.
  if (!find_ends(text)) return false;
  const char* begin = text.data();
  for (std::size_t column = 0; column < slots_.size(); ++column) {
    const char* const end = text.data() + ends_[column];
    if (const std::int64_t slot = slots_[column]; slot >= 0) {
      double& value = row_[static_cast<std::size_t>(slot)];
      if (slot == label_slot_ || !parse_plain_number(begin, end, format_.decimal, value)) {
        RowFault fault = RowFault::none;
        const std::string_view field(begin, static_cast<std::size_t>(end - begin));
        value = parse_value(trimmed(field, format_.delimiter), false, slot, fault);
        if (fault != RowFault::none) return false;
      }
      if (slot >= targets_ && value < 0) return false;
    }
    begin = end + 1;
  }
  return true;
}

bool RowParser::parse_carefully(const Record& record) {
  FieldSplitter splitter(record, format_.delimiter);
  std::string_view field;
  std::size_t column = 0;
  Faulty first;
  for (; splitter.next(field); ++column) {
    if (column >= slots_.size() || slots_[column] < 0) continue;
    RowFault fault = RowFault::none;
    row_[static_cast<std::size_t>(slots_[column])] = parse_value(field, record.quoted, slots_[column], fault);
    if (first.fault == RowFault::none) first = {column, field, fault};
  }
  if (splitter.fault()) {
    complaints_.add(RowFault::quotes,
                    [&] { return fmt::format("{}, line {}: there is {}", path_, record.line, splitter.fault()); });
    return false;
  }
  const bool surplus = column == slots_.size() + 1 && field.empty();
  if (head_.trailing_delimiter ? !surplus : column != slots_.size()) {
    refuse_count(record, column, field.empty());
    return false;
  }
  if (first.fault != RowFault::none) refuse_value(record, first);
  return first.fault == RowFault::none;
}

double RowParser::parse_value(std::string_view field, bool quoted, std::int64_t slot, RowFault& fault) {
  if (slot != label_slot_) {
    const auto [value, why] = parse_number(field, format_.decimal);
    fault = static_cast<RowFault>(why);
    if (fault == RowFault::none && slot >= targets_ && value < 0) fault = RowFault::negative_weight;
    if (fault != RowFault::missing) return value;
  } else {
    std::string undoubled;
    if (quoted) field = undoubled = without_doubled_quotes(field);
    if (const auto known = labels_.find(field)) return static_cast<double>(*known);
    if (is_missing(field)) {
      fault = RowFault::missing;
    } else if (!is_utf8(field)) {
      fault = RowFault::not_utf8;
    } else {
      return static_cast<double>(labels_.index(field));
    }
  }
  if (fault == RowFault::missing && slot < gaps_end_) fault = RowFault::none;
  return std::numeric_limits<double>::quiet_NaN();
}

void RowParser::refuse_count(const Record& record, std::size_t fields, bool last_is_empty) {
  const bool trailing = head_.trailing_delimiter;
  complaints_.add(RowFault::fields, [&] {
    return fmt::format(
        "{}, line {}: got {} fields, expected {}{}", path_, record.line, fields - (trailing && last_is_empty ? 1 : 0),
        slots_.size(),
        trailing ? fmt::format(" and a delimiter behind them, as in line {}", head_.first_row_line) : std::string{});
  });
}

void RowParser::refuse_value(const Record& record, const Faulty& faulty) {
  complaints_.add(faulty.fault, [&] {
    return fmt::format("{}, line {}, column {} ({}): {}", path_, record.line, faulty.column + 1,
                       excerpt(head_.names[faulty.column]), complaint(faulty.field, faulty.fault, format_.decimal));
  });
}

}  // namespace ddp
