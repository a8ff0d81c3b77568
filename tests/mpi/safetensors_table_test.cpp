// Tensors of safetensors files as tables, read in shares.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/bytes_of.hpp"
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string with_header(const std::string& json, const std::string& data) {
  return bytes_of<std::uint64_t>({json.size()}) + json + data;
}

TEST(SafetensorsTable, AKeyThatIsNotThereIsAnsweredByThoseThatAre) {
  const auto refused = [](const ArrayKeys& keys) {
    return refusal([&] { return read_safetensors_table(world(), case_path("P30-good.safetensors"), keys, {}); });
  };
  EXPECT_THAT(refused({"features", "y"}), HasSubstr("no tensor 'features'; it has 'X', 'y'"));
  EXPECT_THAT(refused({"X", "Y"}), HasSubstr("no tensor 'Y'; did you mean 'y'?; it has 'X', 'y'"));
  EXPECT_THAT(refused({"X", "X"}), HasSubstr("'X' cannot be the features and the targets"));
}

template <class T>
void expect_extremes(const std::string& dtype, const std::vector<T>& values, const std::vector<double>& expected) {
  const std::size_t bytes = sizeof(T);
  const std::string json = fmt::format(R"({{"t":{{"dtype":"{0}","shape":[2,1],"data_offsets":[0,{1}]}},)"
                                       R"("f":{{"dtype":"{0}","shape":[2],"data_offsets":[{1},{2}]}}}})",
                                       dtype, 2 * bytes, 4 * bytes);
  const SharedFile file("all.safetensors", with_header(json, bytes_of(values)));
  const auto share = read_safetensors_table(world(), file.path(), {"f", "t"}, {});
  EXPECT_THAT(share.feature_names, ElementsAre("f"));
  EXPECT_THAT(share.target_names, ElementsAre("t"));
  const auto table = whole(share);
  EXPECT_THAT(table.targets, ElementsAre(expected[0], expected[1])) << dtype;
  EXPECT_THAT(table.features, ElementsAre(expected[2], expected[3])) << dtype;
}

template <class T>
void expect_limits(const std::string& dtype) {
  const T low = std::numeric_limits<T>::lowest(), high = std::numeric_limits<T>::max();
  expect_extremes<T>(dtype, {low, high, T{1}, T{0}}, {static_cast<double>(low), static_cast<double>(high), 1, 0});
}

TEST(SafetensorsTable, KnowsEveryTypeOfNumbers) {
  expect_limits<double>("F64");
  expect_limits<float>("F32");
  expect_limits<std::int64_t>("I64");
  expect_limits<std::int32_t>("I32");
  expect_limits<std::int16_t>("I16");
  expect_limits<std::int8_t>("I8");
  expect_limits<std::uint64_t>("U64");
  expect_limits<std::uint32_t>("U32");
  expect_limits<std::uint16_t>("U16");
  expect_limits<std::uint8_t>("U8");
  expect_extremes<std::uint8_t>("BOOL", {0, 1, 1, 0}, {0, 1, 1, 0});
  // The upper halves of -1/3 rounded, of the largest number, and of the smallest subnormal; of binary16 as in NPY.
  expect_extremes<std::uint16_t>("BF16", {0xBEAB, 0x7F7F, 0x0001, 0x8000}, {-0.333984375, 0x1.FEp127, 0x1p-133, 0});
  expect_extremes<std::uint16_t>("F16", {0x0001, 0x03FF, 0x7BFF, 0xB555}, {0x1p-24, 0x3FFp-24, 65504, -0.333251953125});
}

TEST(SafetensorsTable, RefusesTensorsThatAreNoTable) {
  const auto refused = [](const std::string& x, const std::string& y, std::size_t bytes) {
    const SharedFile file("refused.safetensors",
                          with_header("{\"X\":{" + x + "},\"y\":{" + y + "}}", std::string(bytes, '\0')));
    return refusal([&] { return read_table(world(), file.path(), {}, {}); });
  };
  const std::string two = R"("dtype":"U8","shape":[2],"data_offsets":[)";
  EXPECT_THAT(refused(R"("dtype":"U8","shape":[3,1],"data_offsets":[0,3])", two + "3,5]", 5),
              HasSubstr("'X' has 3 rows but 'y' has 2"));
  EXPECT_THAT(refused(R"("dtype":"U8","shape":[1,1,2],"data_offsets":[0,2])", two + "2,4]", 4),
              AllOf(HasSubstr("tensor 'X'"), HasSubstr("(1, 1, 2)")));
  EXPECT_THAT(refused(R"("dtype":"U8","shape":[],"data_offsets":[0,1])", two + "1,3]", 3), HasSubstr("shape is ()"));
  EXPECT_THAT(refused(R"("dtype":"U8","shape":[0,2],"data_offsets":[0,0])", two + "0,2]", 2),
              HasSubstr("no data rows"));
  EXPECT_THAT(refused(R"("dtype":"U8","shape":[2,0],"data_offsets":[0,0])", two + "0,2]", 2), HasSubstr("no columns"));
  EXPECT_THAT(refused(R"("dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2])", two + "2,4]", 4),
              AllOf(HasSubstr("tensor 'X'"), HasSubstr("'F8_E4M3'")));
}

TEST(SafetensorsTable, NamesTheValueThatIsNotFinite) {
  const SharedFile file("nan.safetensors",
                        with_header(R"({"X":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
                                    R"("y":{"dtype":"F32","shape":[3],"data_offsets":[24,36]}})",
                                    bytes_of<float>({0, 0, 0, 0, 0, std::numeric_limits<float>::infinity(), 0, 0, 0})));
  EXPECT_THAT(refusal([&] { return read_table(world(), file.path(), {}, {}); }), HasSubstr("row 2, column 'X#1'"));
}

TEST(SafetensorsTable, AnyBytesAreReadOrRefused) {
  for (const char* name : {"P30-good.safetensors", "P32-f16.safetensors"}) {
    expect_read_or_refused(name, {".safetensors"}, [](std::mt19937& random, std::string& content) {
      for (auto change = random() % 4 + 1; change > 0; --change) {
        content[random() % 140] = static_cast<char>(random() % 2 == 0 ? random() % 256 : '0' + random() % 10);
      }
      if (random() % 4 == 0) content.resize(random() % content.size());
    });
  }
}

}  // namespace
}  // namespace ddp::test
