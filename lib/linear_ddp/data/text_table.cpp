#include <algorithm>
#include <memory>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/record_reader.hpp>
#include <linear_ddp/data/row_parser.hpp>
#include <linear_ddp/data/table.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/data/text_head.hpp>
#include <linear_ddp/data/text_share.hpp>
#include <linear_ddp/launch/agree.hpp>

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

TableShare parse(const OpenTable& table, const ColumnSelection& selection, const TextShare& range) {
  TableShare share = empty_share(table.file, table.head.names, table.columns);
  if (range.begin == range.end) return share;
  // No more rows than line ends, and no more than the fields' shortest texts leave room for.
  const auto columns = static_cast<std::int64_t>(table.head.names.size());
  const auto rows = static_cast<std::size_t>(std::min(range.line_ends, (range.end - range.begin) / columns) + 1);
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

  const TextShare range = share_text(world, table->file, table->head.data_begin, table->head.data_line);
  TableShare share = agree(world, [&] { return parse(*table, selection, range); });
  place_share(world, share);
  return share;
}

}  // namespace ddp
