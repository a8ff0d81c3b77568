#include "format_options.hpp"

namespace ddp::app {

const Choices<FileFormat>& formats() {
  static const Choices<FileFormat> all{{"csv", FileFormat::csv},
                                       {"tsv", FileFormat::tsv},
                                       {"npy", FileFormat::npy},
                                       {"npz", FileFormat::npz},
                                       {"safetensors", FileFormat::safetensors},
                                       {"libsvm", FileFormat::libsvm},
                                       {"hdf5", FileFormat::hdf5}};
  return all;
}

void refuse_for_other_formats(const std::string& data, const FileOptions& file,
                              const std::function<void(const char* names, const std::string& why)>& refuse_given) {
  const bool by_extension = file.format == FileFormat::by_extension;
  const auto format = by_extension ? format_of(data) : file.format;
  if (!format) return;  // a pattern whose files have extensions, or what the reader refuses
  const bool is_text = format == FileFormat::csv || format == FileFormat::tsv;
  const bool has_keys = format == FileFormat::npz || format == FileFormat::safetensors || format == FileFormat::hdf5;
  const bool is_libsvm = format == FileFormat::libsvm;
  const std::string none = ", and --data " + data + " is none";
  if (!is_text && file.targets_file.empty()) {
    refuse_given("--header --delimiter --decimal", "is for text tables" + none);
  }
  if (!has_keys) refuse_given("--x --y", "is for .npz, .safetensors and .h5 files" + none);
  if (has_keys || is_libsvm) refuse_given("--labels", "is for .csv, .tsv and .npy files" + none);
  if (has_keys) refuse_given("--target", "is for tables whose targets are columns; here --y names them");
  if (!is_libsvm) refuse_given("--zero-based", "is for LIBSVM files" + none);
  if (is_libsvm)
    refuse_given("--target --features --exclude --weights --missing",
                 "is for tables with columns; a LIBSVM file has its labels");
  if (!file.targets_file.empty()) refuse_given("--target", "and --labels exclude each other");
}

}  // namespace ddp::app
