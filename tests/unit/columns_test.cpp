// Which columns a selection means, and what it says when it means none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/table.hpp>
#include "support/message_of.hpp"

namespace ddp {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> names{"age", "height", "weight", "age", "#1"};

std::string refusal(const ColumnSelection& selection, const std::vector<std::string>& of = names) {
  return test::message_of<UseError>([&] { static_cast<void>(select_columns(of, selection)); });
}

TEST(Columns, DefaultsAreTheLastAsTargetAndTheRestAsFeatures) {
  const auto columns = select_columns(names, {});
  EXPECT_THAT(columns.features, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(columns.targets, ElementsAre(4));
}

TEST(Columns, KeepTheOrderInWhichTheyAreAskedFor) {
  const auto columns = select_columns(names, {{"weight", "#0"}, {"#3", "height"}});
  EXPECT_THAT(columns.features, ElementsAre(2, 0));
  EXPECT_THAT(columns.targets, ElementsAre(3, 1));
}

TEST(Columns, FeaturesAreAllThatAreNoTargets) {
  EXPECT_THAT(select_columns(names, {{}, {"height"}}).features, ElementsAre(0, 2, 3, 4));
}

TEST(Columns, ANumberIsANumberEvenWhereANameLooksLikeOne) {
  EXPECT_THAT(select_columns(names, {{}, {"#1"}}).targets, ElementsAre(1));
}

TEST(Columns, AnUnknownNameIsToldWithTheNearestOne) {
  EXPECT_THAT(refusal({{}, {"wieght"}}), AllOf(HasSubstr("'wieght'"), HasSubstr("did you mean 'weight'")));
  EXPECT_THAT(refusal({{"income"}, {}}), AllOf(HasSubstr("'income'"), HasSubstr("'age', 'height', 'weight'")));
  EXPECT_THAT(refusal({{}, {"#x"}}), HasSubstr("no column '#x'"));
}

TEST(Columns, AnAmbiguousNameIsRefusedAndItsNumberIsNot) {
  EXPECT_THAT(refusal({{}, {"age"}}), AllOf(HasSubstr("'age'"), HasSubstr("ambiguous"), HasSubstr("'#0' and '#3'")));
  EXPECT_THAT(select_columns(names, {{}, {"#3"}}).targets, ElementsAre(3));
}

TEST(Columns, NumbersBehindTheLastAreRefused) {
  EXPECT_THAT(refusal({{}, {"#5"}}), AllOf(HasSubstr("'#5'"), HasSubstr("'#0' to '#4'")));
  EXPECT_THAT(refusal({{}, {"#99999999999999999999999"}}), HasSubstr("5 columns"));
}

TEST(Columns, AColumnHasOneRole) {
  EXPECT_THAT(refusal({{"height"}, {"#1"}}), AllOf(HasSubstr("'height'"), HasSubstr("as a feature and as a target")));
  EXPECT_THAT(refusal({{"height", "#1"}, {}}), AllOf(HasSubstr("'height'"), HasSubstr("twice")));
}

TEST(Columns, WeightsAndExcludedAreNoFeatures) {
  const auto columns = select_columns(names, {.targets = {"height"}, .excluded = {"#0", "#4"}, .weights = "weight"});
  EXPECT_THAT(columns.features, ElementsAre(3));
  EXPECT_THAT(columns.weights, ElementsAre(2));
  EXPECT_THAT(select_columns(names, {}).weights, ElementsAre());
  EXPECT_THAT(refusal({.targets = {"height"}, .weights = "#1"}), HasSubstr("as the weights and as a target"));
  EXPECT_THAT(refusal({.features = {"height"}, .excluded = {"height"}}),
              HasSubstr("as a feature and as one to exclude"));
  EXPECT_THAT(refusal({.excluded = {"hight"}}), HasSubstr("did you mean 'height'"));
  EXPECT_THAT(refusal({.excluded = {"p"}}, {"p", "q"}), HasSubstr("no feature is left"));
}

TEST(Columns, ClassesAreOfOneTarget) {
  EXPECT_THAT(refusal({.targets = {"height", "weight"}, .target_kind = TargetKind::labels}), HasSubstr("2 targets"));
}

TEST(Columns, AFileOfTargetsHasOneColumn) {
  for (const auto kind : {TargetKind::numbers, TargetKind::labels}) {
    const ColumnSelection selection{.target_kind = kind, .contents = Contents::targets_only};
    EXPECT_THAT(select_columns({"y"}, selection).targets, ElementsAre(0));
    EXPECT_THAT(refusal(selection, {"y", "z"}), HasSubstr("it has 2 columns, but the targets are one"));
  }
}

TEST(Columns, WithoutAFeatureThereIsNothingToLearn) {
  EXPECT_THAT(refusal({}, {"y"}), HasSubstr("no feature"));
  EXPECT_THAT(refusal({{}, {"p", "q"}}, {"p", "q"}), HasSubstr("no feature"));
  EXPECT_THAT(refusal({}, {}), HasSubstr("no columns"));
}

}  // namespace
}  // namespace ddp
