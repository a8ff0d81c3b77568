#include <algorithm>
#include <memory>
#include <span>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/record_reader.hpp>
#include <linear_ddp/data/row_parser.hpp>
#include <linear_ddp/data/table.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/data/text_head.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

struct OpenTable {
  OpenTable(const std::string& path, const TextFormat& wanted, const ColumnSelection& selection)
      : file(path),
        format(complete_format(wanted, path)),
        head(read_text_head(file, format, selection)),
        columns(select_columns_of(file, head.names, selection)) {}

  InputFile file;
  TextFormat format;
  TextHead head;
  SelectedColumns columns;
};

/// The records that begin in [begin, end), and what is before `begin`: a line's number and whether a quote is open.
struct Range {
  std::int64_t begin = 0, end = 0, line = 0;
  bool inside_quotes = false;
};

struct Counts {
  std::int64_t quotes = 0, line_ends = 0;
};

Counts count(const InputFile& file, const Range& range) {
  Counts counts;
  char previous = RecordReader(file, range.begin, 0).previous();
  std::vector<char> buffer(read_block_bytes);
  for (std::int64_t at = range.begin; at < range.end;) {
    const auto block = std::min(static_cast<std::int64_t>(buffer.size()), range.end - at);
    const std::string_view text(buffer.data(), static_cast<std::size_t>(block));
    file.read_all(at, std::span(buffer).first(text.size()));
    counts.quotes += std::count(text.begin(), text.end(), '"');
    counts.line_ends += count_line_ends(text, previous);
    previous = text.back();
    at += block;
  }
  return counts;
}

TableShare parse(const OpenTable& table, const ColumnSelection& selection, const Range& range, std::int64_t line_ends) {
  TableShare share = empty_share(table.file, table.head.names, table.columns);
  if (range.begin == range.end) return share;
  // No more rows than line ends, and no more than the fields' shortest texts leave room for.
  const auto columns = static_cast<std::int64_t>(table.head.names.size());
  const auto rows = static_cast<std::size_t>(std::min(line_ends, (range.end - range.begin) / columns) + 1);
  share.features.reserve(rows * table.columns.features.size());
  share.targets.reserve(rows * table.columns.targets.size());
  share.weights.reserve(rows * table.columns.weights.size());

  RecordReader reader(table.file, range.begin, range.line, range.inside_quotes);
  Record record;
  const bool at_line_begin = reader.previous() == '\n' || reader.previous() == '\r';
  const bool at_record = range.begin == table.head.data_begin || (at_line_begin && !range.inside_quotes);
  if (!at_record && !reader.next(record)) return share;  // the rest of a record of the ranks before
  RowParser parser(table.file.path(), table.head, table.format, table.columns, selection, share);
  try {
    while (reader.offset() < range.end && reader.next(record) && parser.parse(record)) {
    }
  } catch (const UseError& error) {
    parser.complain(error.what());
  }
  parser.finish();
  return share;
}

}  // namespace

TableShare read_text_table(const World& world, const std::string& path, const TextFormat& format,
                           const ColumnSelection& selection) {
  const auto table = agree(world, [&] { return std::make_unique<OpenTable>(path, format, selection); });
  require_same_size(world, table->file);

  const std::int64_t begin = table->head.data_begin;
  const std::int64_t bytes = table->file.size() - begin;
  Range range;
  range.begin = begin + share_begin(bytes, world.rank(), world.size());
  range.end = begin + share_begin(bytes, world.rank() + 1, world.size());
  const Counts counts = agree(world, [&] { return count(table->file, range); });
  range.inside_quotes = sum_of_ranks_before(world, counts.quotes) % 2 != 0;
  range.line = table->head.data_line + sum_of_ranks_before(world, counts.line_ends);

  TableShare share = agree(world, [&] { return parse(*table, selection, range, counts.line_ends); });
  place_share(world, share);
  return share;
}

}  // namespace ddp
