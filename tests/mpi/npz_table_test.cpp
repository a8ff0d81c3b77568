// NumPy's archives of arrays, stored and deflated.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/npy_file.hpp"
#include "support/table_file.hpp"
#include "support/zip_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string header(const std::string& shape, bool fortran = false) {
  return fmt::format("{{'descr': '<f8', 'fortran_order': {}, 'shape': {}}}", fortran ? "True" : "False", shape);
}

/// Two rows: x = 1, 2 and y = 3, 4.
std::vector<ZipEntry> small() {
  return {{"X.npy", npy(header("(2, 1)"), bytes_of<double>({1, 2}))},
          {"y.npy", npy(header("(2,)"), bytes_of<double>({3, 4}))}};
}

std::string refusal_of(const std::string& content, const ArrayKeys& keys = {}) {
  const SharedFile file("refused.npz", content);
  return refusal([&] { return read_npz_table(world(), file.path(), keys, {}); });
}

TEST(NpzTable, ReadsTheSmallest) {
  const SharedFile file("small.npz", zip(small()));
  const auto share = read_table(world(), file.path(), {}, {});
  EXPECT_THAT(share.feature_names, ElementsAre("X"));
  const auto table = whole(share);
  EXPECT_THAT(table.features, ElementsAre(1, 2));
  EXPECT_THAT(table.targets, ElementsAre(3, 4));
  const SharedFile commented("small.npz", [] {
    std::string archive = zip(small());
    archive[archive.size() - 2] = 9;
    return archive + "PK\5\6 note";
  }());
  EXPECT_THAT(whole(read_table(world(), commented.path(), {}, {})).targets, ElementsAre(3, 4));
}

TEST(NpzTable, AKeyThatIsNotThereIsAnsweredByThoseThatAre) {
  EXPECT_THAT(refusal_of(zip(small()), {"x", "y"}), HasSubstr("no array 'x'; did you mean 'X'?; it has 'X', 'y'"));
  EXPECT_THAT(refusal_of(zip(small()), {"X", "labels"}), HasSubstr("no array 'labels'; it has 'X', 'y'"));
  auto twice = small();
  twice.push_back(twice[0]);
  EXPECT_THAT(refusal_of(zip(twice)), HasSubstr("two arrays 'X'"));
}

template <class Change>
std::string refusal_with(Change&& change) {
  auto entries = small();
  change(entries[1]);
  return refusal_of(zip(entries));
}

TEST(NpzTable, RefusesMembersThatAreNotWhatTheDirectorySays) {
  EXPECT_THAT(refusal_with([](auto& y) { y.flags = 1; }), AllOf(HasSubstr("array 'y'"), HasSubstr("encrypted")));
  EXPECT_THAT(refusal_with([](auto& y) { y.method = 14; }), HasSubstr("compression method 14"));
  EXPECT_THAT(refusal_with([](auto& y) { y.said_size = static_cast<std::int64_t>(y.content.size()) - 8; }),
              HasSubstr("expected 16 data bytes for shape (2,) of f8, file has 8"));
  EXPECT_THAT(refusal_with([](auto& y) {
                y.content = npy(header("(2,)"), std::string(8, '\0'));
                y.said_size = static_cast<std::int64_t>(y.content.size()) + 8;
              }),
              AllOf(HasSubstr("array 'y'"), HasSubstr("less than the")));
  EXPECT_THAT(refusal_with([](auto& y) {
                y.said_size = static_cast<std::int64_t>(y.content.size());
                y.content += '\0';
              }),
              HasSubstr("more than the"));
  EXPECT_THAT(refusal_with([](auto& y) { y.said_size = 1 << 30; }), HasSubstr("cannot inflate to"));
  EXPECT_THAT(refusal_with([](auto& y) {
                y.deflates = false;
                y.said_size = 8;
              }),
              HasSubstr("not compressed"));
  EXPECT_THAT(refusal_with([](auto& y) { y.content = "no array at all"; }), HasSubstr("not a .npy file"));
  EXPECT_THAT(refusal_with([](auto& y) {
                y.content = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1000000)}",
                                std::string(2'000'000, '\0'));
              }),
              AllOf(HasSubstr("array 'y'"), HasSubstr("(2, 1000000), too many columns")))
      << "a few KB of zeros, deflated, and 64 MB of names";
}

TEST(NpzTable, RefusesWhatIsNoArchive) {
  const std::string good = zip(small());
  EXPECT_THAT(refusal_of("a,b\n1,2\n"), HasSubstr("no ZIP archive"));
  EXPECT_THAT(refusal_of(""), HasSubstr("no ZIP archive"));
  EXPECT_THAT(refusal_of(good.substr(0, good.size() - 1)), HasSubstr("no ZIP archive"));
  EXPECT_THAT(refusal_of(good.substr(30)), AllOf(HasSubstr("directory"), HasSubstr("complete?")));
  std::string moved = good;
  moved[0] = 'Q';
  EXPECT_THAT(refusal_of(moved), HasSubstr("byte 0: member 'X.npy' has no header there"));
}

TEST(NpzTable, DamagedCompressedDataAreNoticed) {
  auto entries = small();
  std::vector<double> values;
  for (int i = 0; i < 20'000; ++i) values.push_back(1.0 / (i + 1));
  entries[0].content = npy(header("(20000, 1)"), bytes_of(values));
  entries[1].content = npy(header("(20000,)"), bytes_of(values));
  const std::string good = zip(entries);
  const SharedFile file("good.npz", good);
  EXPECT_TRUE(whole(read_table(world(), file.path(), {}, {})).features == values);
  for (const std::size_t at : {std::size_t{500}, good.size() / 4, good.size() / 3}) {  // all in X
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_THAT(refusal_of(damaged), AllOf(HasSubstr("array 'X'"), HasSubstr("damaged")));
  }
}

TEST(NpzTable, SharesGoOverBlocksInBothOrders) {
  const LongArray array;
  for (const bool deflates : {false, true}) {
    for (const bool fortran : {false, true}) {
      const auto shape = fmt::format("({}, {})", array.rows, array.columns);
      const SharedFile file(
          "long.npz",
          zip({{"y.npy", npy(header(fmt::format("({}, 1)", array.rows)), bytes_of(array.column_1)), deflates},
               {"X.npy", npy(header(shape, fortran), bytes_of(fortran ? array.by_column : array.by_row)), deflates}}));
      const auto table = whole(read_table(world(), file.path(), {}, {{"X#2", "X#0"}, {}}));
      EXPECT_TRUE(table.features == array.columns_2_and_0);
      EXPECT_TRUE(table.targets == array.column_1);
    }
  }
}

TEST(NpzTable, AnyBytesAreReadOrRefused) {
  for (const char* name : {"P26-deflate.npz", "P26-stored.npz", "P26-zip64-all.npz", "P26-datadescriptor-zip64.npz"}) {
    expect_read_or_refused(name, {".npz"}, [](std::mt19937& random, std::string& content) {
      for (auto change = random() % 4 + 1; change > 0; --change) {
        content[random() % content.size()] = static_cast<char>(random() % 256);
      }
      if (random() % 8 == 0) content.resize(random() % content.size());
    });
  }
}

}  // namespace
}  // namespace ddp::test
