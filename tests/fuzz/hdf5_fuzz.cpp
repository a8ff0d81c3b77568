// The input tells which HDF5 file is written, by HDF5 itself, and then read. Damaged files are not tried: HDF5 1.10
// crashes on many, within itself, and nobody but HDF5 can mend that.
#include <hdf5.h>

#include <array>
#include <vector>

#include "fuzz/table_check.hpp"

namespace ddp::fuzz {
namespace {

/// Bytes of the input, one after the other; zeros behind its end.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> left) : left_(left) {}
  std::uint8_t next() {
    const std::uint8_t byte = left_.empty() ? std::uint8_t{0} : left_.front();
    left_ = left_.subspan(left_.empty() ? 0 : 1);
    return byte;
  }
  template <class T, std::size_t count>
  T choose(const std::array<T, count>& choices) {
    return choices[next() % count];
  }
  /// Nothing when there are fewer left.
  std::span<const std::uint8_t> take(std::size_t bytes) {
    if (bytes > left_.size()) return {};
    const auto taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }

 private:
  std::span<const std::uint8_t> left_;
};

hid_t choose_type(Bytes& bytes) {
  return bytes.choose(std::array{H5T_IEEE_F64LE, H5T_IEEE_F32BE, H5T_STD_I8LE, H5T_STD_U8BE, H5T_STD_I16BE,
                                 H5T_STD_I32LE, H5T_STD_U64BE, H5T_STD_I64LE, H5T_NATIVE_LDOUBLE, H5T_STD_B8LE,
                                 H5T_C_S1, H5T_STD_REF_OBJ});
}

void add_dataset(hid_t file, const char* name, Bytes& bytes) {
  constexpr std::array<hsize_t, 10> extents{1, 2, 3, 8, 40, 0, 1000, 20'000, 3'000'000, hsize_t{1} << 62U};
  const hid_t type = choose_type(bytes), how = H5Pcreate(H5P_DATASET_CREATE);
  const int dimensions = bytes.next() % 4;
  std::vector<hsize_t> sizes, chunk;
  double elements = 1;
  for (int i = 0; i < dimensions; ++i) {
    sizes.push_back(bytes.choose(extents));
    chunk.push_back(bytes.choose(extents));
    elements *= static_cast<double>(sizes.back());
  }
  const std::uint8_t storage = bytes.next();
  if (storage % 4 != 0) H5Pset_chunk(how, dimensions, chunk.data());
  if (storage % 4 == 2) H5Pset_deflate(how, 1);
  if (storage % 4 == 3) H5Pset_fletcher32(how);
  if (storage >= 128) {
    const std::uint8_t fill = bytes.next();
    H5Pset_fill_value(how, H5T_NATIVE_UINT8, &fill);
  }
  const hid_t space = H5Screate_simple(dimensions, sizes.data(), nullptr);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
  const double wanted = elements * static_cast<double>(H5Tget_size(type));
  const auto content = bytes.take(wanted < 1e6 ? static_cast<std::size_t>(wanted) : 0);
  if (dataset >= 0 && !content.empty()) {
    H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, content.data());
  }
  if (dataset >= 0) H5Dclose(dataset);
  if (space >= 0) H5Sclose(space);
  H5Pclose(how);
}

void write(const std::string& path, Bytes& bytes) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(file, "grp", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  add_dataset(file, "X", bytes);
  switch (bytes.next() % 4) {
    case 0:
      add_dataset(file, "y", bytes);
      break;
    case 1:
      add_dataset(file, "grp/y", bytes);
      break;
    case 2:
      H5Lcreate_soft("grp/y", file, "y", H5P_DEFAULT, H5P_DEFAULT);
      add_dataset(file, "grp/y", bytes);
      break;
    default:
      H5Lcreate_external("not-there.h5", "y", file, "y", H5P_DEFAULT, H5P_DEFAULT);
  }
  H5Gclose(group);
  H5Fclose(file);
}

}  // namespace
}  // namespace ddp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddp::fuzz;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  Input input(data, size);
  const InputFile file({});
  Bytes bytes(input.file);
  write(file.path(), bytes);
  Reading reading;
  reading.file.format = ddp::FileFormat::hdf5;
  if (input.choices.yes()) reading.file.keys = {"X", "grp/y"};
  choose_columns(input.choices, reading.selection);
  check_table(file.path(), input.choices, reading);
  return 0;
}
