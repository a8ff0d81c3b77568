#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/libsvm_parser.hpp>
#include <linear_ddp/data/sparse_features.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/data/text_share.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

/// Adds this rank's lines of a file.
void parse(const InputFile& file, const TextShare& range, bool is_first, bool zero_based, SparseRows& rows) {
  if (range.begin == range.end) return;
  RecordReader reader(file, range.begin, range.line);
  reader.ignore_quotes();
  Record record;
  const bool at_line_begin = is_first || reader.previous() == '\n' || reader.previous() == '\r';
  if (!at_line_begin && !reader.next(record)) return;  // the rest of a line of the rank before
  LibsvmParser parser(file.path(), zero_based, rows);
  while (reader.offset() < range.end && reader.next(record)) parser.parse(record);
}

/// What is known of a table whose lines are read.
struct Extent {
  std::int64_t rows = 0, values = 0, features = 0, base = 1;
  double file_bytes = 0;
};

/// The values that are not given, and the names, may be many times what is in the files: that is refused before memory
/// is taken.
void require_memory(const std::string& path, const Extent& extent, bool is_sparse) {
  constexpr double always = 16 << 20, most_times_the_file = 1000;
  const double rows = static_cast<double>(extent.rows), features = static_cast<double>(extent.features);
  const double names = features * 2 * sizeof(std::string), values = is_sparse ? 0 : rows * features * sizeof(double);
  const double most = always + most_times_the_file * extent.file_bytes;
  if (names + values <= most) return;
  const std::string size =
      fmt::format("{} rows of {} features, in {:.3g} MiB", extent.rows, extent.features, extent.file_bytes / (1 << 20));
  if (names > most) throw UseError(fmt::format("{}: {}: too many features; hash them into fewer", path, size));
  throw UseError(
      fmt::format("{}: {}, are {:.3g} GiB when no value is left out; leave out features, hash them into "
                  "fewer, or keep them sparse (ColumnSelection::leaves_features)",
                  path, size, values / (1 << 30)));
}

std::vector<double> dense(const SparseRows& rows, const Extent& extent) {
  std::vector<double> features(rows.labels.size() * static_cast<std::size_t>(extent.features));
  double* values = features.data();
  std::size_t at = 0;
  for (const std::size_t end : rows.ends) {
    for (; at < end; ++at) values[rows.values[at].index - extent.base] = rows.values[at].value;
    values += extent.features;
  }
  return features;
}

}  // namespace

TableShare read_libsvm_table(const World& world, const std::vector<std::string>& files, const LibsvmFormat& format,
                             bool leaves_features) {
  SparseRows rows;
  Extent extent{.features = format.features, .base = format.zero_based ? 0 : 1};
  TableShare share;
  share.path = files.front();
  for (const auto& path : files) {
    const auto file = agree(world, [&] { return std::make_unique<InputFile>(path); });
    require_same_size(world, *file);
    extent.file_bytes += static_cast<double>(file->size());
    const std::int64_t begin = agree(world, [&] { return begin_of_text(*file); });
    const TextShare range = share_text(world, *file, begin, 1);
    std::int64_t own = -std::ssize(rows.labels);
    agree(world, [&] {
      parse(*file, range, world.rank() == 0, format.zero_based, rows);
      if (format.features == 0 || rows.highest - extent.base < format.features) return;
      throw UseError(fmt::format("{}: it has the index {}, but there are {} features, {} to {}", path, rows.highest,
                                 format.features, extent.base, extent.base + format.features - 1));
    });
    own += std::ssize(rows.labels);
    share.pieces.push_back({extent.rows + sum_of_ranks_before(world, own), own});
    all_reduce_sum(world, std::span(&own, 1));
    extent.rows += own;
  }
  extent.values = std::ssize(rows.values);
  all_reduce_sum(world, std::span(&extent.values, 1));
  const auto highest = all_gather(world, rows.highest);
  if (format.features == 0) extent.features = *std::max_element(highest.begin(), highest.end()) + 1 - extent.base;

  const double dense_bytes = static_cast<double>(extent.rows) * static_cast<double>(extent.features) * sizeof(float);
  const bool is_sparse = leaves_features && bytes_of_sparse(extent.rows, extent.values) < dense_bytes;
  agree(world, [&] {
    if (extent.rows == 0) throw UseError(fmt::format("{}: no data rows", share.path));
    if (extent.features <= 0) throw UseError(fmt::format("{}: no feature: no line has more than a label", share.path));
    require_memory(share.path, extent, is_sparse);
    for (std::int64_t feature = 0; feature < extent.features; ++feature)
      share.feature_names.push_back(std::to_string(feature + extent.base));
    if (!is_sparse) share.features = dense(rows, extent);
  });
  if (is_sparse) {
    share.source = share_sparse(world, rows, share.pieces, extent.rows, extent.base, share.feature_names, share.path,
                                share.notices);
  }
  share.target_names = {"label"};
  share.rows = std::ssize(rows.labels);
  share.total_rows = extent.rows;
  share.targets = std::move(rows.labels);
  if (files.size() == 1) {
    share.first_row = share.pieces.front().first;
    share.pieces.clear();
  }
  const auto queries = all_gather(world, std::int64_t{rows.has_query_ids});
  if (std::count(queries.begin(), queries.end(), 1) > 0) {
    share.notices.push_back(fmt::format("{}: qid: is ignored, no loss here goes by queries", share.path));
  }
  return share;
}

}  // namespace ddp
