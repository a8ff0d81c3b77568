#include <linear_ddp/data/table.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/input_file.hpp>
#include <linear_ddp/data/labels.hpp>
#include <linear_ddp/data/prepare.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

struct Extension {
  std::string_view text;
  FileFormat format;
};

constexpr std::array extensions{Extension{".csv", FileFormat::csv},
                                Extension{".tsv", FileFormat::tsv},
                                Extension{".npy", FileFormat::npy},
                                Extension{".npz", FileFormat::npz},
                                Extension{".safetensors", FileFormat::safetensors},
                                Extension{".svm", FileFormat::libsvm},
                                Extension{".libsvm", FileFormat::libsvm},
                                Extension{".h5", FileFormat::hdf5},
                                Extension{".hdf5", FileFormat::hdf5}};

FileFormat require_format(const std::string& path, FileFormat given) {
  if (given != FileFormat::by_extension) return given;
  if (const auto format = format_of(path)) return *format;
  std::string known;
  for (const auto& extension : extensions) known += fmt::format("{}{}", known.empty() ? "" : ", ", extension.text);
  throw UseError(fmt::format("{}: no reader for files with the extension {}; tables are {}; --format tells another's",
                             path, excerpt(lower_case_extension(path)), known));
}

/// Whether these are the features of a LIBSVM table: its indices, from 0 or 1 on.
bool are_indices(const std::vector<std::string>& names) {
  if (names.empty() || (names[0] != "0" && names[0] != "1")) return false;
  const std::size_t first = names[0] == "0" ? 0 : 1;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != std::to_string(first + i)) return false;
  }
  return true;
}

/// An index means what it meant in the table whose features are asked for, whichever of them this one has.
TableShare read_libsvm_files(const World& world, const std::vector<std::string>& files,
                             const ColumnSelection& selection, bool zero_based) {
  const auto& features = selection.features;
  LibsvmFormat format{zero_based, 0};
  if (are_indices(features)) format = {zero_based || features[0] == "0", std::ssize(features)};
  return read_libsvm_table(world, files, format, selection.leaves_features);
}

TableShare read_file(const World& world, const std::string& path, const TextFormat& text,
                     const ColumnSelection& selection, const FileOptions& options) {
  const auto format = agree(world, [&] { return require_format(path, options.format); });
  switch (format) {
    case FileFormat::npy:
      return read_npy_table(world, path, selection);
    case FileFormat::npz:
      return read_npz_table(world, path, options.keys, selection);
    case FileFormat::safetensors:
      return read_safetensors_table(world, path, options.keys, selection);
    case FileFormat::hdf5:
      return read_hdf5_table(world, path, options.keys, selection);
    case FileFormat::libsvm:
      return read_libsvm_files(world, {path}, selection, options.zero_based);
    default:
      TextFormat completed = text;
      if (completed.delimiter == 0) completed.delimiter = format == FileFormat::tsv ? '\t' : ',';
      return read_text_table(world, path, completed, selection);
  }
}

void require_columns(const std::string& path, FileFormat given) {
  const auto format = require_format(path, given);
  if (format == FileFormat::csv || format == FileFormat::tsv || format == FileFormat::npy) return;
  throw UseError(fmt::format("{}: features and targets in files of their own can be .csv, .tsv and .npy", path));
}

/// The features of one file, and the targets of another one.
TableShare read_two_files(const World& world, const std::string& path, const TextFormat& text,
                          const ColumnSelection& selection, const FileOptions& options) {
  agree(world, [&] {
    require_columns(path, options.format);
    require_columns(options.targets_file, FileFormat::by_extension);
  });
  ColumnSelection of_features = selection, of_targets;
  of_features.contents = Contents::features_only;
  of_features.targets.clear();  // a saved model's have no meaning here
  of_features.target_kind = TargetKind::numbers;
  of_targets.contents = Contents::targets_only;
  of_targets.target_kind = selection.target_kind;
  of_targets.missing = selection.missing;
  TableShare share = read_file(world, path, text, of_features, options);
  TableShare targets = read_file(world, options.targets_file, text, of_targets, {});
  if (selection.target_kind == TargetKind::labels) {
    if (targets.labels.empty()) label_numbers(targets);
    unite_labels(world, targets);  // before rows go to ranks that number the labels otherwise
  }
  take_targets(world, share, targets);
  return share;
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
  const auto twice = repeated_name(share.feature_names);
  if (!twice) return;
  share.notices.push_back(
      fmt::format("{}: several features have the name {}; each is used", share.path, excerpt(*twice)));
}

}  // namespace

std::optional<FileFormat> format_of(const std::string& path) {
  const std::string extension = lower_case_extension(path);
  for (const auto& [text, format] : extensions) {
    if (text == extension) return format;
  }
  return std::nullopt;
}

TableShare read_table(const World& world, const std::string& path, const TextFormat& text,
                      const ColumnSelection& selection, const FileOptions& options) {
  TableShare share;
  const auto files = agreed_files(world, path);
  const bool two_files = !options.targets_file.empty();
  if (two_files && files.size() > 1) {
    throw AgreedError(
        Status::wrong_use,
        fmt::format("{}: the targets of several files cannot be in one of their own, {}", path, options.targets_file));
  }
  const auto add = [&](TableShare part, bool is_first) {
    if (selection.missing == Missing::drop) drop_gaps(world, part);
    if (selection.target_kind == TargetKind::labels && part.labels.empty()) label_numbers(part);
    if (!is_first) {
      agree(world, [&] { append_file(share, std::move(part)); });
      return;
    }
    share = std::move(part);
    if (files.size() > 1) share.pieces = share.ranges();
  };
  // Of these, no file alone tells how many features the table has.
  const bool all_libsvm = agree(world, [&] {
    return !two_files && std::all_of(files.begin(), files.end(), [&](const auto& file) {
      return require_format(file, options.format) == FileFormat::libsvm;
    });
  });
  if (all_libsvm) {
    add(read_libsvm_files(world, files, selection, options.zero_based), true);
  } else {
    for (const auto& file : files) {
      add(two_files ? read_two_files(world, file, text, selection, options)
                    : read_file(world, file, text, selection, options),
          &file == &files.front());
    }
  }
  if (files.size() > 1) share.path = path;
  if (share.total_rows == 0) {
    throw AgreedError(Status::wrong_use, fmt::format("{}: no data rows are left: a value is missing in each", path));
  }
  notice_equal_names(share);
  if (selection.missing == Missing::mean && !share.source) fill_gaps(world, share);  // what stays has no gaps
  if (!selection.weights.empty()) require_weight(world, share);
  if (selection.target_kind == TargetKind::labels) unite_labels(world, share);
  return share;
}

}  // namespace ddp
