#include <linear_ddp/data/text_head.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/field_splitter.hpp>
#include <linear_ddp/data/number.hpp>
#include <linear_ddp/data/record_reader.hpp>
#include <linear_ddp/data/text_share.hpp>
#include <linear_ddp/data/utf8.hpp>

namespace ddp {
namespace {

using Fields = std::vector<std::string>;

/// The next record that is not blank.
std::optional<Fields> next_fields(RecordReader& reader, char delimiter, const std::string& path, std::int64_t& line) {
  Record record;
  do {
    if (!reader.next(record)) return std::nullopt;
  } while (trimmed(record.text, delimiter).empty());
  line = record.line;
  Fields fields;
  FieldSplitter splitter(record, delimiter);
  for (std::string_view field; splitter.next(field);) fields.push_back(without_doubled_quotes(field));
  if (splitter.fault()) throw UseError(fmt::format("{}, line {}: there is {}", path, line, splitter.fault()));
  return fields;
}

bool ends_with_delimiter(const Fields& fields) {
  return fields.size() > 1 && fields.back().empty();
}

/// A field that is no number makes a header. A gap (nothing, or NA) is no proof, or a first row with one would silently
/// be lost; but pandas writes an empty name over its index. Nor is a label that alone is no number.
bool is_header(const Fields& fields, char decimal, const ColumnSelection& selection, const std::string& place) {
  const auto is_text = [&](const std::string& field) {
    return parse_number(field, decimal).fault == NumberFault::not_a_number;
  };
  const auto texts = std::count_if(fields.begin(), fields.end(), is_text);
  if (texts == 0 && fields.size() > 1 && fields[0].empty()) {
    throw UseError(place +
                   ": the first field is empty and no other one is a name: a row with a gap, or a header over "
                   "an index? say it with --header no or --header yes");
  }
  const auto& targets = selection.targets;
  const bool by_number = targets.empty() || targets[0].starts_with('#');
  if (texts == 1 && fields.size() > 1 && selection.target_kind == TargetKind::labels && by_number) {
    const auto text = std::find_if(fields.begin(), fields.end(), is_text);
    if (targets.empty() ? text + 1 == fields.end() : targets[0] == fmt::format("#{}", text - fields.begin())) {
      throw UseError(fmt::format(
          "{}: only the target, {}, is no number: a row with its label, or a header? say it with --header no or "
          "--header yes",
          place, excerpt(*text)));
    }
  }
  return texts > 0;
}

void require_utf8(const Fields& names, const std::string& place) {
  const auto bad = std::find_if_not(names.begin(), names.end(), is_utf8);
  if (bad == names.end()) return;
  throw UseError(
      fmt::format("{}, column {}: the name {} is not UTF-8; convert the file with iconv, from latin1 perhaps", place,
                  bad - names.begin() + 1, excerpt(*bad)));
}

}  // namespace

TextHead read_text_head(const InputFile& file, const TextFormat& format, const ColumnSelection& selection) {
  TextHead head;
  head.data_begin = begin_of_text(file);
  RecordReader reader(file, head.data_begin, 1);
  auto first = next_fields(reader, format.delimiter, file.path(), head.first_row_line);
  const std::string place = fmt::format("{}, line {}", file.path(), head.first_row_line);
  const bool header = first && (format.header == Header::yes || (format.header == Header::automatic &&
                                                                 is_header(*first, format.decimal, selection, place)));
  auto row = first;
  if (header) {
    require_utf8(*first, place);
    head.names = std::move(*first);
    head.data_begin = reader.offset();
    head.data_line = reader.line();
    row = next_fields(reader, format.delimiter, file.path(), head.first_row_line);
  }
  if (!row) {
    throw UseError(fmt::format("{}: no data rows: {}", file.path(), header ? "only a header" : "the file is empty"));
  }

  // One empty field at the end is no column when the first row has it and no name claims it; the other rows are held to
  // what the first one does.
  const std::size_t named = head.names.size() - (ends_with_delimiter(head.names) ? 1 : 0);
  head.trailing_delimiter = ends_with_delimiter(*row) && (!header || row->size() == named + 1);
  if (header) {
    if (head.trailing_delimiter || row->size() == named) head.names.resize(named);
  } else {
    const std::size_t columns = row->size() - (head.trailing_delimiter ? 1 : 0);
    for (std::size_t column = 0; column < columns; ++column) head.names.push_back(fmt::format("#{}", column));
  }
  if (head.names.size() == 1 && head.names[0].find_first_of(";,\t|") != std::string::npos) {
    throw UseError(
        fmt::format("{}: with {} as the delimiter the table has one column, {}; is the delimiter another one?",
                    file.path(), excerpt(std::string(1, format.delimiter)), excerpt(head.names[0])));
  }
  return head;
}

TextFormat complete_format(TextFormat format, const std::string& path) {
  if (format.delimiter == 0) format.delimiter = lower_case_extension(path) == ".tsv" ? '\t' : ',';
  constexpr std::string_view taken = "\"\r\n+-0123456789eE";
  if (taken.find(format.delimiter) != taken.npos || format.delimiter == format.decimal) {
    throw UseError(fmt::format("{} cannot be the delimiter of a table whose decimal sign is {}",
                               excerpt(std::string(1, format.delimiter)), excerpt(std::string(1, format.decimal))));
  }
  if (format.decimal != '.' && format.decimal != ',') {
    throw UseError(
        fmt::format("{} cannot be the decimal sign; '.' and ',' can", excerpt(std::string(1, format.decimal))));
  }
  return format;
}

}  // namespace ddp
