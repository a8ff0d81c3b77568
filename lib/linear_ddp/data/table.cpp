#include <linear_ddp/data/table.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/input_file.hpp>
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

TableShare read_table(const World& world, const std::string& path, const TextFormat& text,
                      const ColumnSelection& selection, const FileOptions& options) {
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
