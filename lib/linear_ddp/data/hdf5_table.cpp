#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/hdf5_handle.hpp>
#include <linear_ddp/data/matrix_table.hpp>

namespace ddp {
namespace {

/// What HDF5 gives a dataset may not be in the file, but filled in.
constexpr double always = 16 << 20, most_times_the_file = 1032;  // deflate's

/// A dataset, whose elements HDF5 itself turns into doubles.
class Hdf5Matrix final : public Matrix {
 public:
  Hdf5Matrix(std::string name, Hdf5Handle dataset, std::vector<std::int64_t> shape, std::int64_t chunk_rows)
      : Matrix(std::move(name), std::move(shape)), dataset_(std::move(dataset)), chunk_rows_(chunk_rows) {}

  void read(std::int64_t first_row, std::int64_t rows, std::vector<ColumnSink> sinks) override {
    const std::int64_t row_bytes = columns() * static_cast<std::int64_t>(sizeof(double));
    const auto fitting = std::max<std::int64_t>(1, static_cast<std::int64_t>(read_block_bytes) / row_bytes);
    // Blocks end where chunks do: a chunk that two blocks share may be inflated twice.
    constexpr std::int64_t most_block_bytes = 64 << 20;
    const bool by_chunks = chunk_rows_ > fitting && chunk_rows_ <= most_block_bytes / row_bytes;
    const std::int64_t block_rows = by_chunks ? chunk_rows_ : fitting;
    std::vector<double> block(static_cast<std::size_t>(std::min(block_rows, rows) * columns()));
    for (std::int64_t row = first_row; row < first_row + rows;) {
      const auto end = std::min(row + block_rows - (by_chunks ? row % block_rows : 0), first_row + rows);
      read_block(row, end - row, block);
      for (ColumnSink& to : sinks) {
        const double* from = block.data() + to.column;
        for (std::int64_t i = row; i < end; ++i, from += columns(), to.values += to.stride) {
          std::copy_n(from, to.count, to.values);
        }
      }
      row = end;
    }
  }

 private:
  void read_block(std::int64_t first_row, std::int64_t rows, std::vector<double>& values) {
    static std::mutex
        library;  // which is not made for several threads; training and validation rows may be read at once
    const std::lock_guard lock(library);
    const QuietHdf5 quiet;
    const std::array begin{static_cast<hsize_t>(first_row), hsize_t{0}};
    const std::array count{static_cast<hsize_t>(rows), static_cast<hsize_t>(columns())};
    const auto dimensions = static_cast<int>(shape().size());
    const auto in_file = hdf5_handle(H5Dget_space(dataset_.get()), H5Sclose, name(), "read its shape");
    check_hdf5(H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, begin.data(), nullptr, count.data(), nullptr), name(),
               "select rows");
    const auto in_memory =
        hdf5_handle(H5Screate_simple(dimensions, count.data(), nullptr), H5Sclose, name(), "select memory");
    check_hdf5(H5Dread(dataset_.get(), H5T_NATIVE_DOUBLE, in_memory.get(), in_file.get(), H5P_DEFAULT, values.data()),
               name(), "read its rows");
  }

  Hdf5Handle dataset_;
  std::int64_t chunk_rows_;
};

Hdf5Handle open_file(const std::string& path) {
  const auto access = hdf5_handle(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, path, "prepare to open it");
  // Many ranks read, and nobody writes; network file systems may know no locks, or refuse them where nothing is
  // written.
  check_hdf5(H5Pset_file_locking(access.get(), false, true), path, "leave out file locks");
  return hdf5_handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose, path, "open it as an HDF5 file");
}

herr_t collect(hid_t, const char* name, const H5L_info_t*, void* names) noexcept {
  constexpr std::size_t enough = 1000;
  auto& all = *static_cast<std::vector<std::string>*>(names);
  all.emplace_back(name);
  return all.size() < enough ? 0 : 1;
}

std::vector<std::string> datasets_of(const Hdf5Handle& file) {
  std::vector<std::string> names;
  H5Lvisit(file.get(), H5_INDEX_NAME, H5_ITER_NATIVE, collect, &names);
  std::erase_if(names, [&](const std::string& name) {
    const Hdf5Handle object(H5Oopen(file.get(), name.c_str(), H5P_DEFAULT), H5Oclose);
    return !object || H5Iget_type(object.get()) != H5I_DATASET;
  });
  return names;
}

Hdf5Handle open_dataset(const Hdf5Handle& file, const std::string& path, const std::string& key) {
  Hdf5Handle dataset(H5Dopen2(file.get(), key.c_str(), H5P_DEFAULT), H5Dclose);
  if (dataset) return dataset;
  throw UseError(fmt::format("{}: no dataset {}{}", path, excerpt(key), key_suggestion(key, datasets_of(file))));
}

void require_numbers(const std::string& name, const Hdf5Handle& dataset) {
  const auto type = hdf5_handle(H5Dget_type(dataset.get()), H5Tclose, name, "read its type");
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind == H5T_INTEGER || kind == H5T_FLOAT) return;
  const char* found = kind == H5T_STRING     ? "texts"
                      : kind == H5T_ENUM     ? "an enumeration, as h5py's booleans are"
                      : kind == H5T_COMPOUND ? "compounds, as h5py's complex numbers are"
                                             : "no numbers";
  throw UseError(fmt::format("{}: its elements are {}; store whole or floating-point numbers", name, found));
}

/// Rows of its chunks; 1 when it has none. Throws UseError for chunks that no file of this size fills.
std::int64_t rows_of_chunks(const std::string& name, const Hdf5Handle& dataset, double most_bytes) {
  const auto how = hdf5_handle(H5Dget_create_plist(dataset.get()), H5Pclose, name, "read how it is stored");
  if (H5Pget_layout(how.get()) != H5D_CHUNKED) return 1;
  std::array<hsize_t, 2> sizes{1, 1};
  check_hdf5(H5Pget_chunk(how.get(), 2, sizes.data()), name, "read the size of its chunks");
  const double bytes = static_cast<double>(sizes[0]) * static_cast<double>(sizes[1]) * sizeof(double);
  if (bytes <= most_bytes) return static_cast<std::int64_t>(sizes[0]);
  throw UseError(fmt::format("{}: its chunks have the shape ({}, {}), but the file is far smaller than one", name,
                             sizes[0], sizes[1]));
}

std::unique_ptr<Matrix> open_matrix(const InputFile& input, const Hdf5Handle& file, const std::string& key) {
  auto dataset = open_dataset(file, input.path(), key);
  const std::string name = fmt::format("{}: dataset {}", input.path(), excerpt(key));
  require_numbers(name, dataset);
  const auto space = hdf5_handle(H5Dget_space(dataset.get()), H5Sclose, name, "read its shape");
  const int dimensions = H5Sget_simple_extent_ndims(space.get());
  check_hdf5(dimensions, name, "read its shape");
  std::vector<hsize_t> sizes(static_cast<std::size_t>(dimensions));
  check_hdf5(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr), name, "read its shape");
  const double most_bytes = always + most_times_the_file * static_cast<double>(input.size());
  double bytes = sizeof(double);
  std::vector<std::int64_t> shape;
  for (const hsize_t size : sizes) {
    bytes *= static_cast<double>(size);
    shape.push_back(static_cast<std::int64_t>(size));
  }
  if (bytes > most_bytes) {
    throw UseError(fmt::format("{}: its shape is {}, but the file has only {} bytes; is it complete?", name,
                               shape_text(shape), input.size()));
  }
  const std::int64_t chunk_rows = shape.size() <= 2 ? rows_of_chunks(name, dataset, most_bytes) : 1;
  return std::make_unique<Hdf5Matrix>(name, std::move(dataset), std::move(shape), chunk_rows);
}

}  // namespace

TableShare read_hdf5_table(const World& world, const std::string& path, const ArrayKeys& keys,
                           const ColumnSelection& selection) {
  auto table = open_matrix_table(world, path, [&](MatrixTable& opened) {
    const QuietHdf5 quiet;
    const Hdf5Handle file = open_file(path);
    const auto open = [&](const std::string& key) { return open_matrix(opened.file, file, key); };
    take_matrices(opened, open, keys, selection);
  });
  return read_matrix_table(world, std::move(table), selection);
}

}  // namespace ddp
