// HDF5 datasets, read in shares.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <fstream>
#include <iterator>

#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ArrayKeys in_group{"X", "grp/y"};

/// Written by rank 0, by the library's C functions.
class Hdf5File {
 public:
  Hdf5File() : file_("table.h5", "") {
    if (world().rank() == 0) id_ = H5Fcreate(file_.path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  }
  void add(const char* name, hid_t type, std::vector<hsize_t> sizes, const std::vector<double>& values,
           const std::vector<hsize_t>& chunk = {}) {
    if (world().rank() != 0) return;
    const auto dimensions = static_cast<int>(sizes.size());
    const hid_t space = H5Screate_simple(dimensions, sizes.data(), nullptr), how = H5Pcreate(H5P_DATASET_CREATE);
    if (!chunk.empty()) {
      H5Pset_chunk(how, dimensions, chunk.data());
      H5Pset_deflate(how, 1);
    }
    const hid_t dataset = H5Dcreate2(id_, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    if (!values.empty()) {
      EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    }
    H5Dclose(dataset);
    H5Pclose(how);
    H5Sclose(space);
  }
  /// Nothing can be added then.
  const std::string& path() {
    if (id_ >= 0) H5Fclose(id_);
    id_ = -1;
    MPI_Barrier(world().comm());
    return file_.path();
  }

 private:
  SharedFile file_;
  hid_t id_ = -1;
};

TEST(Hdf5Table, AKeyThatIsNotThereIsAnsweredByThoseThatAre) {
  EXPECT_THAT(refusal([] {
                return read_hdf5_table(world(), case_path("P50-gzip-be.h5"), {"X", "grp/Y"}, {});
              }),
              HasSubstr("did you mean 'grp/y'?"));
  EXPECT_THAT(refusal([] {
                return read_hdf5_table(world(), case_path("P50-gzip-be.h5"), {"X", "grp"}, {});
              }),
              HasSubstr("no dataset 'grp'"));
}

TEST(Hdf5Table, RefusesWhatIsNoTable) {
  const SharedFile text("text.h5", "a,b\n1,2\n");
  EXPECT_THAT(refusal([&] { return read_table(world(), text.path(), {}, {}); }),
              AllOf(HasSubstr("could not open it as an HDF5 file"), HasSubstr("signature")));
  EXPECT_THAT(refusal([] { return read_case("nope.h5"); }), HasSubstr("No such file"));
  Hdf5File file;
  file.add("three", H5T_NATIVE_DOUBLE, {2, 1, 1}, {1, 2});
  file.add("scalar", H5T_NATIVE_DOUBLE, {}, {1});
  file.add("none", H5T_NATIVE_DOUBLE, {0, 2}, {});
  file.add("text", H5T_C_S1, {2}, {});
  file.add("huge", H5T_NATIVE_DOUBLE, {1ULL << 40U, 1024}, {}, {64, 1024});
  file.add("wide", H5T_NATIVE_DOUBLE, {1, 1'000'000}, {});
  file.add("y", H5T_NATIVE_DOUBLE, {2}, {1, 2});
  file.add("nan", H5T_NATIVE_DOUBLE, {2}, {1, std::numeric_limits<double>::quiet_NaN()});
  const std::string path = file.path();
  const auto refused = [&](const char* key) {
    return refusal([&] { return read_hdf5_table(world(), path, {key, "y"}, {}); });
  };
  EXPECT_THAT(refused("three"), AllOf(HasSubstr("dataset 'three'"), HasSubstr("(2, 1, 1)")));
  EXPECT_THAT(refused("scalar"), HasSubstr("shape is ()"));
  EXPECT_THAT(refused("none"), HasSubstr("no data rows"));
  EXPECT_THAT(refused("text"), HasSubstr("texts"));
  EXPECT_THAT(refused("huge"), HasSubstr("but the file has only"));
  EXPECT_THAT(refused("wide"), AllOf(HasSubstr("dataset 'wide'"), HasSubstr("(1, 1000000), too many columns")));
  EXPECT_THAT(refused("nan"), HasSubstr("row 1, column 'nan'"));
}

TEST(Hdf5Table, SharesGoOverChunksAndBlocks) {
  constexpr std::size_t rows = 40'001, columns = 3;
  std::vector<double> x, features, targets;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) x.push_back(static_cast<double>(10 * row + column));
    features.insert(features.end(), {static_cast<double>(10 * row + 2), static_cast<double>(10 * row)});
    targets.push_back(static_cast<double>(row));
  }
  const std::vector<std::vector<hsize_t>> chunk_shapes{{}, {100, 2}, {30'000, 3}};
  for (const auto& chunk : chunk_shapes) {
    for (const hid_t type : {H5T_IEEE_F64BE, H5T_STD_I32BE, H5T_STD_U64LE}) {
      Hdf5File file;
      file.add("X", type, {rows, columns}, x, chunk);
      file.add("y", H5T_STD_U16LE, {rows, 1}, targets);
      const auto table = whole(read_table(world(), file.path(), {}, {{"X#2", "X#0"}, {}}));
      EXPECT_TRUE(table.features == features);
      EXPECT_TRUE(table.targets == targets);
    }
  }
}

TEST(Hdf5Table, DamagedDataAreNoticed) {
  std::ifstream source(case_path("P50-gzip-be.h5"), std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(source), {}};
  const std::size_t deflated = content.rfind("x^");
  ASSERT_NE(deflated, content.npos);
  content[deflated + 8] = static_cast<char>(content[deflated + 8] ^ 0x55);
  const SharedFile file("damaged.h5", content);
  EXPECT_THAT(refusal([&] { return read_hdf5_table(world(), file.path(), in_group, {}); }),
              AllOf(HasSubstr("could not read its rows"), HasSubstr("HDF5")));
  const SharedFile cut("cut.h5", content.substr(0, content.size() / 2));
  EXPECT_THAT(refusal([&] { return read_hdf5_table(world(), cut.path(), in_group, {}); }),
              AllOf(HasSubstr("cut.h5"), HasSubstr("HDF5")));
}

}  // namespace
}  // namespace ddp::test
