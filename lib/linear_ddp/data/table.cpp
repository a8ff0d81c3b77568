#include <linear_ddp/data/table.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/input_file.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/launch/agree.hpp>

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

}  // namespace

FileFormat format_of(const std::string& path) {
  const std::string extension = lower_case_extension(path);
  std::string known;
  for (const auto& [text, format] : extensions) {
    if (text == extension) return format;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", text);
  }
  throw UseError(fmt::format("{}: no reader for files with the extension {}; tables are {}; --format tells another's",
                             path, excerpt(extension), known));
}

namespace {

TableShare read_with_targets(const World& world, const std::string& path, const TextFormat& text,
                             const ColumnSelection& selection, const FileOptions& options) {
  agree(world, [&] {
    const auto has_columns = [](FileFormat format) {
      return format == FileFormat::csv || format == FileFormat::tsv || format == FileFormat::npy;
    };
    const auto format = options.format == FileFormat::by_extension ? format_of(path) : options.format;
    const std::string* const wrong = !has_columns(format)                            ? &path
                                     : !has_columns(format_of(options.targets_file)) ? &options.targets_file
                                                                                     : nullptr;
    if (wrong == nullptr) return;
    throw UseError(fmt::format("{}: features and targets in files of their own can be .csv, .tsv and .npy", *wrong));
  });
  ColumnSelection features = selection;
  features.contents = Contents::features_only;
  FileOptions own = options;
  own.targets_file.clear();
  TableShare share = read_table(world, path, text, features, own);
  take_targets(world, share,
               read_table(world, options.targets_file, text,
                          {.features = {}, .targets = {}, .contents = Contents::targets_only}));
  return share;
}

}  // namespace

TableShare read_table(const World& world, const std::string& path, const TextFormat& text,
                      const ColumnSelection& selection, const FileOptions& options) {
  if (!options.targets_file.empty()) return read_with_targets(world, path, text, selection, options);
  const auto format =
      agree(world, [&] { return options.format == FileFormat::by_extension ? format_of(path) : options.format; });
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
      return read_libsvm_table(world, path, options.zero_based);
    default:
      TextFormat completed = text;
      if (completed.delimiter == 0) completed.delimiter = format == FileFormat::tsv ? '\t' : ',';
      return read_text_table(world, path, completed, selection);
  }
}

}  // namespace ddp
