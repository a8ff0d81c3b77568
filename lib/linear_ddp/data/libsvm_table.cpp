#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/libsvm_parser.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/data/text_share.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

SparseRows parse(const InputFile& file, const TextShare& range, bool is_first, bool zero_based) {
  SparseRows rows;
  if (range.begin == range.end) return rows;
  RecordReader reader(file, range.begin, range.line);
  reader.ignore_quotes();
  Record record;
  const bool at_line_begin = is_first || reader.previous() == '\n' || reader.previous() == '\r';
  if (!at_line_begin && !reader.next(record)) return rows;  // the rest of a line of the rank before
  LibsvmParser parser(file.path(), zero_based, rows);
  while (reader.offset() < range.end && reader.next(record)) parser.parse(record);
  return rows;
}

/// The values that are not given, and the names, may be many times what is in the file: that is refused before memory
/// is taken.
void require_dense(const InputFile& file, std::int64_t rows, std::int64_t features) {
  constexpr double always = 16 << 20, most_times_the_file = 1000;
  const double bytes_of_feature = static_cast<double>(rows) * sizeof(double) + 2 * sizeof(std::string);
  const double bytes = bytes_of_feature * static_cast<double>(features);
  if (bytes <= always + most_times_the_file * static_cast<double>(file.size())) return;
  throw UseError(
      fmt::format("{}: {} rows of {} features are {:.3g} GiB when no value is left out, for a file of {:.3g} MiB; this "
                  "program does not train on sparse rows: leave out features, or hash them into fewer",
                  file.path(), rows, features, bytes / (1 << 30), static_cast<double>(file.size()) / (1 << 20)));
}

TableShare dense(const InputFile& file, const SparseRows& rows, std::int64_t features, std::int64_t base) {
  TableShare share;
  share.path = file.path();
  for (std::int64_t feature = 0; feature < features; ++feature) {
    share.feature_names.push_back(std::to_string(feature + base));
  }
  share.target_names = {"label"};
  share.rows = std::ssize(rows.labels);
  share.targets = rows.labels;
  share.features.resize(rows.labels.size() * static_cast<std::size_t>(features));
  std::size_t at = 0;
  for (std::size_t row = 0; row < rows.labels.size(); ++row) {
    double* const values = share.features.data() + row * static_cast<std::size_t>(features);
    for (; at < rows.ends[row]; ++at) values[rows.values[at].index - base] = rows.values[at].value;
  }
  return share;
}

}  // namespace

TableShare read_libsvm_table(const World& world, const std::string& path, bool zero_based, std::int64_t features) {
  const auto file = agree(world, [&] { return std::make_unique<InputFile>(path); });
  require_same_size(world, *file);
  const std::int64_t begin = agree(world, [&] { return begin_of_text(*file); });
  const TextShare range = share_text(world, *file, begin, 1);
  const SparseRows rows = agree(world, [&] { return parse(*file, range, world.rank() == 0, zero_based); });

  std::int64_t total_rows = std::ssize(rows.labels);
  all_reduce_sum(world, std::span(&total_rows, 1));
  const auto highest = all_gather(world, rows.highest);
  const auto queries = all_gather(world, std::int64_t{rows.has_query_ids});
  const std::int64_t base = zero_based ? 0 : 1;
  const std::int64_t last = *std::max_element(highest.begin(), highest.end()), known = features;
  if (known == 0) features = last + 1 - base;
  TableShare share = agree(world, [&] {
    if (last - base >= features) {
      throw UseError(fmt::format("{}: it has the index {}, but there are {} features, {} to {}", path, last, known,
                                 base, base + known - 1));
    }
    if (total_rows == 0) throw UseError(fmt::format("{}: no data rows", path));
    if (features <= 0) throw UseError(fmt::format("{}: no feature: no line has more than a label", path));
    require_dense(*file, total_rows, features);
    return dense(*file, rows, features, base);
  });
  place_share(world, share);
  if (std::count(queries.begin(), queries.end(), 1) > 0) {
    share.notices.push_back(fmt::format("{}: qid: is ignored, no loss here goes by queries", path));
  }
  return share;
}

}  // namespace ddp
