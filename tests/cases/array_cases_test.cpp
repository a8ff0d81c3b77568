// Cases of arrays in files: NPY, NPZ and safetensors files that broke other people's readers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <iterator>

#include "support/fit.hpp"
#include "support/npy_file.hpp"
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal_of_case(const std::string& name) {
  return refusal([&] { return read_case(name); });
}

TEST(Cases, P20_AnArrayByColumnsIsNotTransposed) {
  for (const char* name : {"P20-c.npy", "P20-fortran.npy"}) {
    SCOPED_TRACE(name);
    expect_base_case(read_case(name, {{}, {"#2"}}));
  }
  const auto square = whole(read_case("P20-square-fortran.npy", {{}, {"#2"}}));
  EXPECT_THAT(square.features, ElementsAre(0, 1, 3, 4, 6, 7));
  EXPECT_THAT(square.targets, ElementsAre(2, 5, 8));
}

TEST(Cases, P21_BytesAreSwapped) {
  expect_base_case(read_case("P21-bigendian.npy", {{}, {"#2"}}));
  expect_base_case(read_case("P21-bigendian-f4-fortran.npy", {{}, {"#2"}}));
}

TEST(Cases, P22_NumbersAreConverted) {
  expect_base_case(read_case("P22-f2.npy", {{}, {"#2"}}));
  expect_base_case(read_case("P22-f4.npy", {{}, {"#2"}}));
  expect_base_case(read_case("P22-i8.npy", {{}, {"#2"}}), 7);  // the row with fractions is left out
  expect_base_case(read_case("P22-i4.npy", {{}, {"#2"}}), 7);
  for (const char* name : {"P22-u1.npy", "P22-b1.npy"}) {
    // What the files hold, from their bytes behind the header of 128.
    std::ifstream file(case_path(name), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    const auto table = whole(read_case(name));
    ASSERT_EQ(table.rows, 7) << name;
    for (std::size_t row = 0; row < 7; ++row) {
      EXPECT_EQ(table.features[2 * row + 1], static_cast<unsigned char>(content[128 + 3 * row + 1])) << name;
      EXPECT_EQ(table.targets[row], static_cast<unsigned char>(content[128 + 3 * row + 2])) << name;
    }
  }
  EXPECT_THAT(refusal_of_case("P22-complex.npy"), AllOf(HasSubstr("P22-complex.npy"), HasSubstr("'<c16'")));
}

TEST(Cases, P23_AHeaderOfVersion2HasALongerLength) {
  expect_base_case(read_case("P23-v2.npy", {{}, {"#2"}}));
}

TEST(Cases, P25_AnArrayIsOfTwoDimensionsAndWhole) {
  EXPECT_THAT(refusal_of_case("P25-0d.npy"), HasSubstr("shape is ()"));
  EXPECT_THAT(refusal_of_case("P25-3d.npy"), HasSubstr("shape is (2, 2, 2)"));
  EXPECT_THAT(refusal_of_case("P25-zero-rows.npy"), HasSubstr("no data rows"));
  EXPECT_THAT(refusal_of_case("P25-truncated.npy"),
              AllOf(HasSubstr("P25-truncated.npy"), HasSubstr("expected 192 data bytes"), HasSubstr("file has 172")));
  // One dimension is as good as one column where one is wanted.
  EXPECT_THAT(refusal_of_case("P25-1d.npy"), HasSubstr("shape is (8,)"));
  const SharedFile x("x.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (8, 2)}",
                                  bytes_of<double>({0, 0, 1, 0, 0, 1, 1, 1, 2, 1, 3, -1, -1, 2, 0.5, 0.25})));
  expect_base_case(
      read_table(world(), x.path(), {}, {},
                 {.format = {}, .keys = {}, .zero_based = false, .targets_file = case_path("P25-1d.npy")}));
}

TEST(Cases, P26_AnArchivesDirectoryCounts) {
  for (const char* name : {"stored", "deflate", "datadescriptor-zip64", "zip64-local", "zip64-all"}) {
    SCOPED_TRACE(name);
    expect_base_case(read_case(std::string("P26-") + name + ".npz"));
  }
  EXPECT_THAT(refusal_of_case("P26-bad-crc.npz"), AllOf(HasSubstr("array 'X'"), HasSubstr("CRC-32")));
}

TEST(Cases, P30_AKeyThatIsThereTwiceIsTold) {
  const auto good = read_case("P30-good.safetensors");
  EXPECT_THAT(good.feature_names, ElementsAre("X#0", "X#1"));
  EXPECT_THAT(good.target_names, ElementsAre("y"));
  expect_base_case(good);
  EXPECT_THAT(refusal_of_case("P30-duplicate-key.safetensors"), HasSubstr("duplicate key 'y'"));
}

/// The most memory that the process has had so far.
std::int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} << 10U;
}

TEST(Cases, P31_WhatAHeaderSaysIsHeldAgainstTheFile) {
  const std::vector<std::pair<std::string, std::string>> broken{{"header-len-huge", "header length"},
                                                                {"not-json", "no JSON"},
                                                                {"out-of-file", "tensor 'y'"},
                                                                {"shape-mismatch", "tensor 'y'"},
                                                                {"shape-overflow", "tensor 'y'"},
                                                                {"short", "truncated"},
                                                                {"truncated", "truncated"}};
  const std::int64_t before = peak_bytes();
  for (const auto& [name, message] : broken) {
    EXPECT_THAT(refusal_of_case("P31-" + name + ".safetensors"), AllOf(HasSubstr("P31-" + name), HasSubstr(message)));
  }
  EXPECT_LT(peak_bytes() - before, 100'000'000);
}

TEST(Cases, P32_HalfOfAFloatIsANumber) {
  expect_base_case(read_case("P32-bf16.safetensors"));
  expect_base_case(read_case("P32-f16.safetensors"));
}

TEST(Cases, P33_MetadataAreNoTensor) {
  expect_base_case(read_case("P33-empty-metadata.safetensors"));
  expect_base_case(read_case("P33-reordered.safetensors"));
  EXPECT_THAT(refusal_of_case("P33-metadata-only.safetensors"), HasSubstr("no tensor 'X'; it has none"));
}

}  // namespace
}  // namespace ddp::test
