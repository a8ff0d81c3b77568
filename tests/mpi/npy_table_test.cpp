// .npy arrays, read in shares.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "support/npy_file.hpp"
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal_of(const std::string& content) {
  const SharedFile file("refused.npy", content);
  return refusal([&] { return read_table(world(), file.path(), {}, {}); });
}

TEST(NpyTable, RefusesWhatIsNoTable) {
  EXPECT_THAT(refusal([] { return read_npy_table(world(), case_path("BASE.csv"), {}); }), HasSubstr("not a .npy file"));
  EXPECT_THAT(refusal([] { return read_case("nope.npy"); }), HasSubstr("No such file"));
}

TEST(NpyTable, RefusesHeadersThatNumpyDoesNotWrite) {
  const std::string data(48, '\0');
  const std::string order = "'fortran_order': False";
  EXPECT_THAT(refusal_of(npy("{'descr': [('a', '<f8')], " + order + ", 'shape': (2, 3)}", data)),
              HasSubstr("structured"));
  EXPECT_THAT(refusal_of(npy("{'descr': '|O', " + order + ", 'shape': (2, 3)}", data)),
              HasSubstr("'|O' (Python objects)"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<U5', " + order + ", 'shape': (2, 3)}", data)), HasSubstr("'<U5'"));
  EXPECT_THAT(refusal_of(npy("{'descr': 'f8', " + order + ", 'shape': (2, 3)}", data)), HasSubstr("'f8'"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8', 'shape': (2, 3)}", data)), HasSubstr("'fortran_order'"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8', 'descr': '<f8', " + order + "}", data)), HasSubstr("only once"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8', " + order + ", 'shape': (2, -3)}", data)), HasSubstr("a size"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8', " + order + ", 'shape': (2 3)}", data)), HasSubstr("',' or ')'"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8', " + order + ", 'shape': (6)}", data)), HasSubstr("','"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8', " + order + ", 'shape': (2, 3)} + 1", data)),
              HasSubstr("nothing behind"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8', 'fortran_order': 0, 'shape': (2, 3)}", data)),
              HasSubstr("True or False"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8'", data)), HasSubstr("'}'"));
  EXPECT_THAT(refusal_of(npy("", data)), HasSubstr("'{'"));
  EXPECT_THAT(refusal_of(npy("{}", data, 4)), HasSubstr("version 4.0"));
  EXPECT_THAT(refusal_of("\x93NUMPY\x02" + std::string(1, '\0') + "\xFF\xFF\xFF\x7F{}"), HasSubstr("2147483647 bytes"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8', " + order + ", 'shape': (4611686018427387904, 4)}", data)),
              HasSubstr("more than 2^63"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8', " + order + ", 'shape': (99999999999999999999, 4)}", data)),
              HasSubstr("below 2^63"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8', " + order + ", 'shape': (6, 0)}", "")), HasSubstr("no columns"));
  EXPECT_THAT(refusal_of(npy("{'descr': '<f8', " + order + ", 'shape': (2, 2)}", data)), HasSubstr("file has 48"));
}

template <class T>
void expect_extremes(const std::string& descr) {
  const std::vector<T> values{std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max(), T{1}, T{0}};
  for (const char order : {'<', '>', '=', '|'}) {
    const std::string literal =
        fmt::format("{{\"shape\":(2,2,),'fortran_order':True,'descr':'{}{}',}}\n", order, descr);
    const SharedFile file("extremes.npy", npy(literal, bytes_of(values, order == '>'), 3));
    const auto table = whole(read_table(world(), file.path(), {}, {}));
    EXPECT_THAT(table.features, ElementsAre(static_cast<double>(values[0]), static_cast<double>(values[1]))) << literal;
    EXPECT_THAT(table.targets, ElementsAre(1, 0)) << literal;
  }
}

TEST(NpyTable, KnowsEveryTypeInEveryByteOrder) {
  expect_extremes<std::uint8_t>("u1");
  expect_extremes<std::int8_t>("i1");
  expect_extremes<std::uint16_t>("u2");
  expect_extremes<std::int16_t>("i2");
  expect_extremes<std::uint32_t>("u4");
  expect_extremes<std::int32_t>("i4");
  expect_extremes<std::uint64_t>("u8");
  expect_extremes<std::int64_t>("i8");
  expect_extremes<float>("f4");
  expect_extremes<double>("f8");
}

TEST(NpyTable, HalfPrecisionIncludesSubnormals) {
  // IEEE 754 binary16: smallest subnormal, largest subnormal, largest number, -1/3 rounded.
  const std::vector<std::uint16_t> bits{0x0001, 0x03FF, 0x7BFF, 0xB555};
  const SharedFile file("half.npy", npy("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 2)}", bytes_of(bits)));
  const auto table = whole(read_table(world(), file.path(), {}, {}));
  EXPECT_THAT(table.features, ElementsAre(0x1p-24, 65504));
  EXPECT_THAT(table.targets, ElementsAre(0x3FFp-24, -0.333251953125));
}

TEST(NpyTable, NamesTheFirstValueThatIsNotFinite) {
  std::vector<float> values(40, 1.0F);
  values[4 * 7 + 2] = std::numeric_limits<float>::quiet_NaN();
  values[4 * 8 + 3] = std::numeric_limits<float>::infinity();
  const SharedFile file("nan.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (10, 4)}", bytes_of(values)));
  const auto refused = [&](const ColumnSelection& selection) {
    return refusal([&] { return read_table(world(), file.path(), {}, selection); });
  };
  EXPECT_THAT(refused({}), HasSubstr("row 7, column '#2' (both from 0): nan"));
  EXPECT_THAT(refused({{"#0"}, {"#3"}}), HasSubstr("row 8, column '#3' (both from 0): inf"));
  EXPECT_EQ(whole(read_table(world(), file.path(), {}, {{"#1"}, {"#0"}})).rows, 10);
}

TEST(NpyTable, SharesGoOverBlocksInBothOrders) {
  const LongArray array;
  for (const bool fortran : {false, true}) {
    const std::string literal = fmt::format("{{'descr': '<f8', 'fortran_order': {}, 'shape': ({}, {})}}",
                                            fortran ? "True" : "False", array.rows, array.columns);
    const SharedFile file("long.npy", npy(literal, bytes_of(fortran ? array.by_column : array.by_row)));
    const auto share = read_table(world(), file.path(), {}, {{"#2", "#0"}, {"#1"}});
    EXPECT_EQ(share.first_row, static_cast<std::int64_t>(array.rows) * world().rank() / world().size());
    const auto table = whole(share);
    EXPECT_TRUE(table.features == array.columns_2_and_0);
    EXPECT_TRUE(table.targets == array.column_1);
  }
}

TEST(NpyTable, TargetsMayBeInAFileOfTheirOwn) {
  const auto read = [](const std::string& data, const std::string& targets) {
    return read_table(world(), data, {}, {}, {.format = {}, .keys = {}, .zero_based = false, .targets_file = targets});
  };
  const SharedFile x("x.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (8, 2)}",
                                  bytes_of<double>({0, 0, 1, 0, 0, 1, 1, 1, 2, 1, 3, -1, -1, 2, 0.5, 0.25})));
  const SharedFile y("y.csv", "target\n1\n3\n-2\n0\n2\n10\n-7\n1.25\n"), a("a.csv", "a\n1\n2\n");
  const auto share = read(x.path(), y.path());
  expect_base(share);
  EXPECT_THAT(share.target_names, ElementsAre("target"));
  const auto ones = whole(read(x.path(), case_path("P25-1d.npy")));
  EXPECT_EQ(ones.rows, 8);
  EXPECT_EQ(ones.targets.size(), 8U);
  EXPECT_EQ(whole(read(y.path(), case_path("P25-1d.npy"))).features.size(), 8U);
  EXPECT_THAT(refusal([&] { return read(x.path(), a.path()); }), AllOf(HasSubstr("has 2 rows"), HasSubstr("has 8")));
  EXPECT_THAT(refusal([&] { return read(x.path(), x.path()); }), HasSubstr("2 columns, but the targets are one"));
  EXPECT_THAT(refusal([&] { return read(case_path("P30-good.safetensors"), y.path()); }), HasSubstr("P30-good"));
}

TEST(NpyTable, TargetsInAFileOfTheirOwnMayBeClassesAndHaveGaps) {
  // The rows without a label, and without a feature, go; the classes of all ranks are in order.
  const SharedFile x("x.csv", "a\n1\n2\n\"\"\n4\n5\n6\n"), y("y.csv", "kind\nred\nblue\nred\n\"\"\nred\ngreen\n");
  ColumnSelection selection;
  selection.target_kind = TargetKind::labels;
  selection.missing = Missing::drop;
  FileOptions options;
  options.targets_file = y.path();
  const auto share = read_table(world(), x.path(), {}, selection, options);
  EXPECT_THAT(share.labels, ElementsAre("blue", "green", "red"));
  const auto table = whole(share);
  EXPECT_THAT(table.features, ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(table.targets, ElementsAre(2, 0, 2, 1));
  const SharedFile two("two.csv", "kind,count\nred,900\nblue,901\nred,902\nred,903\nred,904\ngreen,905\n");
  options.targets_file = two.path();
  EXPECT_THAT(refusal([&] { return read_table(world(), x.path(), {}, selection, options); }),
              AllOf(HasSubstr("two.csv: it has 2 columns"), HasSubstr("the targets are one")));
}

TEST(NpyTable, AnyBytesAreReadOrRefused) {
  constexpr std::string_view alphabet = "'(),:0189<>fiu{}";
  for (const char* name : {"P20-fortran.npy", "P22-i4.npy", "P22-f2.npy", "P23-v2.npy", "P25-1d.npy"}) {
    expect_read_or_refused(name, {".npy"}, [&](std::mt19937& random, std::string& content) {
      const bool any = random() % 2 == 0;
      for (auto change = random() % 4 + 1; change > 0; --change) {
        content[random() % 80] = any ? static_cast<char>(random() % 256) : alphabet[random() % alphabet.size()];
      }
      if (random() % 4 == 0) content.resize(random() % content.size());
    });
  }
}

}  // namespace
}  // namespace ddp::test
