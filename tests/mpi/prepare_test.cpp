// What becomes of gaps, weights, excluded columns and several files, for any number of ranks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include <linear_ddp/data/prepare.hpp>
#include "support/message_of.hpp"
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TableShare read_text(const std::string& text, const ColumnSelection& selection) {
  const SharedFile file("table.csv", text);
  return read_table(world(), file.path(), {}, selection);
}

std::string refusal_of(const std::string& text, const ColumnSelection& selection) {
  const SharedFile file("table.csv", text);
  return refusal([&] { return read_table(world(), file.path(), {}, selection); });
}

TEST(Gaps, DropLeavesTheRowOut) {
  const TableShare share = read_case("P04-missing.csv", {.targets = {"y"}, .missing = Missing::drop});
  const auto table = whole(share);
  EXPECT_THAT(table.features, ElementsAre(0, 0, 1, 0, 0, 1, 2, 1, 3, -1, -1, 2, 0.5, 0.25));
  EXPECT_THAT(table.targets, ElementsAre(1, 3, -2, 2, 10, -7, 1.25));
  EXPECT_THAT(share.notices, ElementsAre(AllOf(HasSubstr("P04-missing.csv"), HasSubstr("1 of 8 rows"))));
  EXPECT_EQ(whole(read_case("P04-missing-label.csv", {.targets = {"y"}, .missing = Missing::drop})).rows, 7);
  EXPECT_THAT(refusal_of("a,y\n,1\n2,NA\n", {.missing = Missing::drop}), HasSubstr("no data rows are left"));
  const TableShare complete = read_case("BASE.csv", {.missing = Missing::drop});
  expect_base(complete);
  EXPECT_THAT(complete.notices, IsEmpty());
}

TEST(Gaps, MeanIsOfAllRanksValues) {
  // b of the other rows: 0, 0, 1, 1, -1, 2, 0.25.
  const TableShare share = read_case("P04-missing.csv", {.targets = {"y"}, .missing = Missing::mean});
  EXPECT_EQ(whole(share).features[7], 3.25 / 7);
  EXPECT_THAT(share.notices, ElementsAre(HasSubstr("1 missing value ")));
  EXPECT_THAT(refusal([] { return read_case("P04-missing-label.csv", {.targets = {"y"}, .missing = Missing::mean}); }),
              HasSubstr("line 7, column 3 ('y'): missing value"));
  EXPECT_THAT(refusal_of("a,b,y\n1,,1\n2,?,1\n", {.missing = Missing::mean}),
              AllOf(HasSubstr("'b'"), HasSubstr("no value"), HasSubstr("--exclude")));
}

TEST(Gaps, InfinityIsNone) {
  for (const Missing missing : {Missing::drop, Missing::mean}) {
    EXPECT_THAT(refusal_of("a,y\n1,1\ninf,1\n", {.missing = missing}), HasSubstr("line 3, column 1 ('a'): 'inf'"));
  }
}

/// A .npy file of doubles.
std::string npy(std::int64_t rows, std::int64_t columns, const std::vector<double>& values) {
  const std::string head =
      fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  std::string bytes(values.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(head.size()) + '\0' + head + bytes;
}

TEST(Gaps, OfArraysAreNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const SharedFile file("gaps.npy", npy(4, 3, {1, 2, 0.5, nan, 4, 1, 5, 6, 0, 9, 8, 2}));
  const auto read = [&](const ColumnSelection& selection) { return read_table(world(), file.path(), {}, selection); };
  const TableShare dropped = read({.targets = {"#1"}, .weights = "#2", .missing = Missing::drop});
  EXPECT_THAT(whole(dropped).features, ElementsAre(1, 5, 9));
  EXPECT_THAT(joined(dropped.weights), ElementsAre(0.5, 0, 2));
  EXPECT_THAT(whole(read({.missing = Missing::mean})).features, ElementsAre(1, 2, 5, 4, 5, 6, 9, 8));
  EXPECT_THAT(refusal([&] { return read({}); }), HasSubstr("row 1, column '#0' (both from 0): nan"));
  EXPECT_THAT(refusal([&] { return read({.targets = {"#0"}, .missing = Missing::mean}); }), HasSubstr("column '#0'"));
  const SharedFile infinite("infinite.npy", npy(1, 2, {-1 / 0.0, 2}));
  EXPECT_THAT(refusal([&] { return read_table(world(), infinite.path(), {}, {.missing = Missing::drop}); }),
              HasSubstr("-inf"));
}

TEST(Weights, AreNeitherFeatureNorTarget) {
  const TableShare share = read_text("a,w,y\n1,0.5,2\n3,0,4\n5,2,6\n", {.weights = "w"});
  EXPECT_THAT(share.feature_names, ElementsAre("a"));
  EXPECT_THAT(whole(share).targets, ElementsAre(2, 4, 6));
  EXPECT_THAT(joined(share.weights), ElementsAre(0.5, 0, 2));
  EXPECT_THAT(read_text("a,w,y\n1,0.5,2\n", {}).weights, IsEmpty());
}

TEST(Weights, ThatCannotBeAreRefused) {
  EXPECT_THAT(refusal_of("a,w,y\n1,1,2\n3,-1,4\n", {.weights = "w"}),
              HasSubstr("line 3, column 2 ('w'): the weight '-1' is negative"));
  EXPECT_THAT(refusal_of("a,w,y\n1,1,2\n3,,4\n", {.weights = "#1"}), HasSubstr("line 3, column 2 ('w'): missing"));
  EXPECT_THAT(refusal_of("a,w,y\n1,1,2\n3,inf,4\n", {.weights = "w"}), HasSubstr("line 3, column 2 ('w'): 'inf'"));
  EXPECT_THAT(refusal_of("a,w,y\n1,0,2\n3,0,4\n", {.weights = "w"}), HasSubstr("weights of all rows are 0"));
  const SharedFile file("negative.npy", npy(2, 3, {1, 2, 3, 4, -5, 6}));
  EXPECT_THAT(refusal([&] { return read_table(world(), file.path(), {}, {.weights = "#1"}); }),
              HasSubstr("row 1, column '#1' (both from 0): the weight -5 is negative"));
}

TEST(Excluded, ColumnsMayHoldAnything) {
  const TableShare share = read_text("id,a,b,y\nx1,1,2,3\nx2,4,5,6\n", {.excluded = {"id", "#2"}});
  EXPECT_THAT(share.feature_names, ElementsAre("a"));
  EXPECT_THAT(whole(share).features, ElementsAre(1, 4));
}

TEST(Faults, AreCountedByKind) {
  std::string text = "a,b,y\n";
  for (int row = 0; row < 40; ++row) text += "1,x,1\n";
  for (int row = 0; row < 40; ++row) text += "1,2\n";
  const std::string message = refusal_of(text, {});
  EXPECT_THAT(message, HasSubstr("line 2, column 2 ('b'): 'x' is not a number"));
  EXPECT_THAT(message, HasSubstr("more like it)"));
  if (world().size() == 1) {
    EXPECT_THAT(message, AllOf(HasSubstr("not a number (and 39 more like it); "),
                               HasSubstr("line 42: got 2 fields, expected 3 (and 39 more like it)")));
  }
}

/// Files beside each other, on rank 0's disk.
class SharedFolder {
 public:
  explicit SharedFolder(const std::vector<std::pair<std::string, std::string>>& files) : first_("a folder's", "") {
    folder_ = first_.path().substr(0, first_.path().rfind('/') + 1);
    for (const auto& [name, content] : files) {
      if (world().rank() == 0) std::ofstream(folder_ + name, std::ios::binary) << content;
    }
    MPI_Barrier(world().comm());
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return folder_ + name; }

 private:
  SharedFile first_;
  std::string folder_;
};

TEST(Files, FollowEachOtherInNaturalOrder) {
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<double> features, targets, weights;
  for (int part = 1; part <= 11; ++part) {
    std::string text = "x,w,y\n";
    for (int row = 0; row < part % 4 + 1; ++row) {
      const bool gap = row == 1;
      text += fmt::format("{},{},{}\n", gap ? "" : std::to_string(100 * part + row), part, part % 3 == 0 ? "b" : "a");
      if (gap) continue;
      features.push_back(100 * part + row);
      weights.push_back(part);
      targets.push_back(part % 3 == 0 ? 1 : 0);
    }
    files.emplace_back(fmt::format("part-{}.csv", part), text);
  }
  const SharedFolder folder(files);
  const TableShare share = read_table(world(), folder / "part-*.csv", {},
                                      {.weights = "w", .target_kind = TargetKind::labels, .missing = Missing::drop});
  EXPECT_THAT(share.labels, ElementsAre("a", "b"));
  ASSERT_EQ(share.total_rows, static_cast<std::int64_t>(features.size()));
  ASSERT_EQ(share.pieces.size(), 11U);
  // Each rank says where its rows are: together they are all rows, each once.
  std::vector<double> found(3 * features.size());
  std::size_t own = 0;
  for (const RowRange& piece : share.pieces) {
    for (std::int64_t row = piece.first; row < piece.first + piece.count; ++row, ++own) {
      const auto at = 3 * static_cast<std::size_t>(row);
      found.at(at) += share.features.at(own);
      found.at(at + 1) += share.targets.at(own);
      found.at(at + 2) += share.weights.at(own);
    }
  }
  EXPECT_EQ(own, static_cast<std::size_t>(share.rows));
  all_reduce_sum(world(), std::span(found));
  for (std::size_t row = 0; row < features.size(); ++row) {
    EXPECT_EQ(found[3 * row], features[row]);
    EXPECT_EQ(found[3 * row + 1], targets[row]);
    EXPECT_EQ(found[3 * row + 2], weights[row]);
  }
}

TEST(Files, OfATableHaveTheSameColumns) {
  const SharedFolder folder({{"p1.csv", "a,b,y\n1,2,3\n"},
                             {"p2.csv", "a,c,y\n1,2,3\n"},
                             {"q1.csv", "a,y\n1,2\n"},
                             {"q2.csv", "a,b,y\n1,2,3\n"}});
  EXPECT_THAT(refusal([&] { return read_table(world(), folder / "p?.csv", {}, {}); }),
              AllOf(HasSubstr("p2.csv: feature 2 is 'c', but 'b' in"), HasSubstr("p1.csv")));
  EXPECT_THAT(refusal([&] { return read_table(world(), folder / "q[12].csv", {}, {}); }),
              AllOf(HasSubstr("q2.csv: feature 2 is 'b', but no such one in")));
  EXPECT_THAT(refusal([&] { return read_table(world(), folder / "none-*.csv", {}, {}); }),
              AllOf(HasSubstr("none-*.csv"), HasSubstr("no file matches")));
}

TEST(Files, ANameThatIsThereIsNoPattern) {
  const SharedFolder folder({{"a[1].csv", "a,y\n1,2\n"}, {"a1.csv", "a,y\n3,4\n"}});
  EXPECT_THAT(whole(read_table(world(), folder / "a[1].csv", {}, {})).features, ElementsAre(1));
}

TEST(Files, AreSortedAsAPersonWould) {
  if (world().size() > 1) GTEST_SKIP() << "asks the file system only";
  const SharedFolder folder(
      {{"p10", ""}, {"p9", ""}, {"p", ""}, {"p010", ""}, {"p1b2", ""}, {"p1b10", ""}, {"p01", ""}});
  auto files = find_files(folder / "p*");
  for (auto& file : files) file = file.substr(file.rfind('/') + 1);
  EXPECT_THAT(files, ElementsAre("p", "p01", "p1b2", "p1b10", "p9", "p010", "p10"));
}

}  // namespace
}  // namespace ddp::test
