#include <linear_ddp/data/table.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/input_file.hpp>
#include <linear_ddp/data/labels.hpp>
#include <linear_ddp/data/prepare.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

TableShare read_file(const World& world, const std::string& path, const TextFormat& text,
                     const ColumnSelection& selection) {
  const std::string extension = lower_case_extension(path);
  if (extension == ".csv" || extension == ".tsv") return read_text_table(world, path, text, selection);
  if (extension == ".npy") return read_npy_table(world, path, selection);
  // Every rank has the same path: the error needs no agreement, but it is one of all ranks.
  throw AgreedError(Status::wrong_use,
                    fmt::format("{}: no reader for files with the extension {}; tables are .csv, .tsv "
                                "and .npy",
                                path, excerpt(extension)));
}

/// Rank 0 looks for all: the others could see other files, or see them in another order.
std::vector<std::string> agreed_files(const World& world, const std::string& path) {
  const auto own = agree(world, [&] { return world.rank() == 0 ? find_files(path) : std::vector<std::string>{}; });
  std::string joined;
  for (const auto& file : own) joined += file + '\0';
  joined = broadcast(world, joined, 0);
  std::vector<std::string> files;
  for (std::size_t begin = 0; begin < joined.size(); begin += files.back().size() + 1) {
    files.push_back(joined.substr(begin, joined.find('\0', begin) - begin));
  }
  return files;
}

void notice_equal_names(TableShare& share) {
  auto names = share.feature_names;
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  share.notices.push_back(
      fmt::format("{}: several features have the name {}; each is used", share.path, excerpt(*twice)));
}

}  // namespace

TableShare read_table(const World& world, const std::string& path, const TextFormat& text,
                      const ColumnSelection& selection) {
  TableShare share;
  const auto files = agreed_files(world, path);
  for (const auto& file : files) {
    TableShare part = read_file(world, file, text, selection);
    if (selection.missing == Missing::drop) drop_gaps(world, part);
    if (selection.target_kind == TargetKind::labels && part.labels.empty()) label_numbers(part);
    if (&file == &files.front()) {
      share = std::move(part);
      if (files.size() > 1) share.pieces = {{share.first_row, share.rows}};
    } else {
      agree(world, [&] { append_file(share, std::move(part)); });
    }
  }
  if (files.size() > 1) share.path = path;
  if (share.total_rows == 0) {
    throw AgreedError(Status::wrong_use, fmt::format("{}: no data rows are left: a value is missing in each", path));
  }
  notice_equal_names(share);
  if (selection.missing == Missing::mean) fill_gaps(world, share);
  if (!selection.weights.empty()) require_weight(world, share);
  if (selection.target_kind == TargetKind::labels) unite_labels(world, share);
  return share;
}

}  // namespace ddp
