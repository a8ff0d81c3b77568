// Targets that are names of classes: one set for all ranks, whatever a rank has of it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <linear_ddp/data/labels.hpp>
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Labelled {
  std::vector<std::string> classes;
  std::vector<double> targets;
};

Labelled read_labels(const std::string& text, const ColumnSelection& selection = labels_of(),
                     const TextFormat& format = {}, const std::string& name = "labels.csv") {
  const SharedFile file(name, text);
  const TableShare share = read_table(world(), file.path(), format, selection);
  return {share.labels, whole(share).targets};
}

std::string refusal_of_labels(const std::string& text, const ColumnSelection& selection = labels_of()) {
  const SharedFile file("labels.csv", text);
  return refusal([&] { return read_table(world(), file.path(), {}, selection); });
}

TEST(Labels, AreSortedByValueWhenAllAreNumbers) {
  const auto numbers = read_labels("x,y\n1,10\n1,9\n1,1.0\n1, 1\n1,-2e0\n1,+9\n1,\"1\"\n");
  EXPECT_THAT(numbers.classes, ElementsAre("-2e0", "1", "+9", "10"));
  EXPECT_THAT(numbers.targets, ElementsAre(3, 2, 1, 1, 0, 2, 1));
  const auto texts = read_labels("x,y\n1,10\n1,9\n1,b\n1,9.0\n");
  EXPECT_THAT(texts.classes, ElementsAre("10", "9", "9.0", "b"));
  EXPECT_THAT(texts.targets, ElementsAre(0, 1, 3, 2));
}

TEST(Labels, AreTextsWithoutBlanksAndQuotes) {
  ColumnSelection selection = labels_of("y");
  selection.excluded = {"note"};
  const auto labels =
      read_labels("x,y,note\n1, red ,a\n2,\"red\",b\n3,\"a \"\"b\"\", c\",\"\"\n4,gr\xC3\xBCn,d\n", selection);
  EXPECT_THAT(labels.classes, ElementsAre("a \"b\", c", "gr\xC3\xBCn", "red"));
  EXPECT_THAT(labels.targets, ElementsAre(2, 2, 0, 1));
}

TEST(Labels, OfArraysAreTheShortestTexts) {
  EXPECT_EQ(shortest_text(3), "3");
  EXPECT_EQ(shortest_text(-1), "-1");
  EXPECT_EQ(shortest_text(0.5), "0.5");
  EXPECT_EQ(shortest_text(-0.0), "0");
  EXPECT_EQ(shortest_text(0.1), "0.1");
  const TableShare share = read_case("P22-i8.npy", labels_of());  // y is 1, 3, -2, 0, 2, 10, -7
  EXPECT_THAT(share.labels, ElementsAre("-7", "-2", "0", "1", "2", "3", "10"));
  EXPECT_THAT(whole(share).targets, ElementsAre(3, 5, 1, 2, 4, 6, 0));
}

TEST(Labels, MustBeThereAndUtf8) {
  EXPECT_THAT(refusal_of_labels("x,y\n1,a\n2,\n"), HasSubstr("line 3, column 2 ('y'): missing value ''"));
  EXPECT_THAT(refusal_of_labels("x,y\n1,a\n2,NA\n", labels_of("y", Missing::mean)), HasSubstr("missing value 'NA'"));
  EXPECT_THAT(refusal_of_labels("x,y\n1,a\n2,gr\xFCn\n"),
              AllOf(HasSubstr("line 3, column 2 ('y')"), HasSubstr("UTF-8")));
  EXPECT_THAT(refusal_of_labels("x,y,z\n1,a,b\n", {.targets = {"y", "z"}, .target_kind = TargetKind::labels}),
              HasSubstr("2 targets"));
}

TEST(Labels, AClassThatOnlyAGapsRowHasIsNone) {
  const auto labels = read_labels("x,y\n1,a\n,b\n3,c\n4,\n", labels_of("y", Missing::drop));
  EXPECT_THAT(labels.classes, ElementsAre("a", "c"));
  EXPECT_THAT(labels.targets, ElementsAre(0, 1));
}

TEST(Labels, AFirstRowIsNoHeaderForItsLabel) {
  const std::string rows = "5.1,3.5,setosa\n7,3.2,versicolor\n";
  EXPECT_THAT(refusal_of_labels(rows), AllOf(HasSubstr("line 1"), HasSubstr("'setosa'"), HasSubstr("--header")));
  EXPECT_THAT(read_labels(rows, labels_of(), {.header = Header::no}).classes, ElementsAre("setosa", "versicolor"));
  EXPECT_THAT(refusal_of_labels(rows, labels_of("#2")), HasSubstr("'setosa'"));
  EXPECT_THAT(read_labels("1,2,y\n5,3,a\n4,2,b\n", labels_of("y")).classes, ElementsAre("a", "b"));
}

TEST(Labels, AsManyAsRowsAreNumbers) {
  std::string text = "x,price\n";
  for (int row = 0; row <= 10'000; ++row) text += fmt::format("1,{}.5\n", row);
  EXPECT_THAT(refusal_of_labels(text),
              AllOf(HasSubstr("'price'"), HasSubstr("10001 rows"), HasSubstr("--task regression")));
  EXPECT_EQ(read_labels(text + "2,7.5\n").classes.size(), 10'001U);
}

}  // namespace
}  // namespace ddp::test
