// Cases of arithmetic: sums of many, scales, overflows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/fit.hpp"
#include "support/npy_file.hpp"
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

TEST(Cases, N01_SumsOfManyDoNotStopGrowing) {
  if (world().size() > 1) GTEST_SKIP() << "a sum of ranks' sums has fewer addends than that of one rank";
  constexpr std::int64_t rows = 20'000'000;  // beyond 2^24, where a float and 1 are that float
  const SharedFile file("ones.npy", "");
  std::ofstream stream(file.path(), std::ios::binary);
  stream << npy("{'descr': '<f4', 'fortran_order': False, 'shape': (20000000, 2), }", "");
  const std::vector<float> ones(10'000, 1.0F);
  for (std::int64_t row = 0; row < rows; row += 5'000) {
    stream.write(reinterpret_cast<const char*>(ones.data()), std::ssize(ones) * std::int64_t{sizeof(float)});
  }
  stream.close();
  TableShare share = read_table(world(), file.path(), {}, {});
  EXPECT_EQ(share.total_rows, rows);
  EXPECT_THAT(Standardizer(world(), share).mean(), ElementsAre(1));
  const Dataset data = gather_dataset(world(), share);
  share = {};
  // The gradient of both is -2 at zeros: a step of a quarter of that ends at y = 0.5 · 1 + 0.5.
  const Fit step = fit(data, {.lr = 0.25});
  EXPECT_EQ(step.losses[0], 1);
  EXPECT_EQ(step.training.rows, rows);
  EXPECT_EQ(step.scores.rows, rows);
  // A product adds up 65 536 floats, some libraries' one after the other. Of all rows it would be off by 4e-4.
  EXPECT_THAT(step.weight, ElementsAre(FloatNear(0.5F, 1e-4F)));
  EXPECT_THAT(step.bias, ElementsAre(0.5F));
  EXPECT_LT(step.scores.loss, 1e-8);
}

TEST(Cases, N02_AConstantColumnKeepsWeightZero) {
  for (const char* name : {"N02-constant.csv", "N02-all-zero.csv"}) {
    SCOPED_TRACE(name);
    TableShare share = read_case(name, {{}, {"y"}});
    const Standardizer standardizer(world(), share);
    EXPECT_EQ(standardizer.scale()[0], 1);
    EXPECT_NEAR(standardizer.scale()[1], 5.76628129733540, 1e-14);
    standardizer.apply(share);
    Fit best = fit(share, {.lr = 0.25, .epochs = 100});
    EXPECT_THAT(best.weight, ElementsAre(0, FloatNear(11.5325625946708F, 1e-5F)));
    EXPECT_THAT(best.bias, ElementsAre(FloatNear(20, 1e-5F)));
    standardizer.fold_into(best.weight, best.bias);
    EXPECT_THAT(best.weight, ElementsAre(0, FloatNear(2, 1e-6F)));
    EXPECT_THAT(best.bias, ElementsAre(FloatNear(1, 2e-5F)));
  }
}

TEST(Cases, N03_DescentFromZeroGivesTheMinimumNorm) {
  const Fit identical = fit(read_case("N03-identical.csv", {{}, {"y"}}), {.lr = 0.1, .epochs = 300});
  EXPECT_THAT(identical.weight, ElementsAre(FloatNear(0.5, 1e-6F), FloatNear(0.5, 1e-6F)));
  EXPECT_THAT(identical.bias, ElementsAre(FloatNear(0, 1e-6F)));
  EXPECT_LT(identical.scores.loss, 1e-12);
  const Fit shifted = fit(read_case("N03-shifted.csv", {{}, {"y"}}), {.lr = 0.1, .epochs = 300});
  EXPECT_THAT(shifted.weight, ElementsAre(FloatNear(5.F / 6, 1e-5F), FloatNear(1.F / 6, 1e-5F)));
  EXPECT_THAT(shifted.bias, ElementsAre(FloatNear(-1.F / 3, 1e-5F)));
  EXPECT_LT(shifted.scores.loss, 1e-10);
}

TEST(Cases, N04_ExpOverflowsAndTheLossDoesNot) {
  const Fit two = fit(read_case("N04-overflow.csv", labels_of("label")),
                      {.loss = LossKind::bce_with_logits, .lr = 1, .bias = false});
  EXPECT_FLOAT_EQ(two.losses[0], std::log(2.F));
  EXPECT_FLOAT_EQ(two.weight[0], 500.F / 3);
  // A weight of 167 is a float to 8e-6, and there are logits of 1000 times it.
  EXPECT_NEAR(two.scores.classes->log_loss, 500000.0 / 9, 0.01);
  const Fit three = fit(read_case("N04-softmax-overflow.csv", labels_of("label")),
                        {.loss = LossKind::cross_entropy, .lr = 1, .bias = false});
  EXPECT_THAT(three.weight,
              ElementsAre(FloatNear(-250.F / 3, 4e-5F), FloatNear(-250.F / 3, 4e-5F), FloatNear(500.F / 3, 4e-5F)));
  EXPECT_NEAR(three.scores.classes->log_loss, 125000, 0.02);
}

TEST(Cases, N05_TheSmallerLabelIsTheFirstClass) {
  const std::vector<std::pair<const char*, std::vector<std::string>>> codings{
      {"N05-01.csv", {"0", "1"}}, {"N05-03.csv", {"0", "3"}}, {"N05-12.csv", {"1", "2"}}, {"N05-pm1.csv", {"-1", "1"}}};
  for (const auto& [name, classes] : codings) {
    SCOPED_TRACE(name);
    const TableShare share = read_case(name, labels_of("label"));
    EXPECT_EQ(share.labels, classes);
    EXPECT_THAT(whole(share).targets, ElementsAre(0, 0, 1, 0, 1, 1));
    const Fit best = fit(share, {.loss = LossKind::bce_with_logits, .lr = 0.5, .momentum = 0.9, .epochs = 500});
    EXPECT_THAT(best.bias, ElementsAre(FloatNear(-0.60701379292571F, 1e-5F)));
    EXPECT_THAT(best.weight, ElementsAre(FloatNear(1.21402758585142F, 1e-5F)));
    EXPECT_NEAR(best.scores.classes->log_loss, 0.412997805841602, 1e-7);
  }
}

TEST(Cases, N06_DivergenceEndsAllRanksAtOneStep) {
  const TableShare share = read_case("N06-unscaled.csv", {{}, {"y"}});
  std::string message = "no error";
  try {
    static_cast<void>(fit(share, {.lr = 0.1, .epochs = 50}));
  } catch (const AgreedError& error) {
    message = error.what();
    EXPECT_EQ(error.status(), Status::failed);
  }
  EXPECT_THAT(message, AllOf(HasSubstr("at step "), HasSubstr("--standardize"), HasSubstr("--lr")));
  EXPECT_THAT(all_gather(world(), message), Each(message));
  const Fit scaled = fit_standardized(share, {.lr = 0.1, .epochs = 500});
  EXPECT_THAT(scaled.weight, ElementsAre(FloatNear(0.0003F, 1e-9F), FloatNear(0, 1e-5F)));
  EXPECT_THAT(scaled.bias, ElementsAre(FloatNear(1, 5e-5F)));
}

TableShare read_nist(const std::string& name) {
  return read_table(world(), dataset_path(name), {}, {{}, {"y"}});
}

/// NIST's certified values, as near as float and gradient descent come to them: the targets are rounded to float.
TEST(Cases, N07_WhatIsIllConditionedIsSolvedOrToldByItsLoss) {
  const Fit norris = fit_standardized(read_nist("Norris.csv"), {.lr = 0.25, .epochs = 200});
  EXPECT_FLOAT_EQ(norris.weight[0], 1.00211681802045F);
  EXPECT_NEAR(norris.bias[0], -0.262323073774029, 1e-4);
  EXPECT_NEAR(norris.scores.loss, 26.6173985294224 / 36, 1e-4);
  const Fit eleven_rows = fit(read_nist("NoInt1.csv"), {.lr = 1e-4, .epochs = 100, .bias = false});
  EXPECT_FLOAT_EQ(eleven_rows.weight[0], 2.07438016528926F);
  EXPECT_NEAR(eleven_rows.scores.loss, 127.272727272727 / 11, 1e-5);
  const Fit three_rows = fit(read_nist("NoInt2.csv"), {.lr = 0.01, .epochs = 100, .bias = false});
  EXPECT_FLOAT_EQ(three_rows.weight[0], 0.727272727272727F);
  EXPECT_NEAR(three_rows.scores.loss, 0.272727272727273 / 3, 1e-6);

  const Fit longley = fit_standardized(read_nist("Longley.csv"), {.lr = 0.3, .momentum = 0.98, .epochs = 4000});
  const double certified[] = {15.0618722713733,  -0.0358191792925910, -2.02022980381683,
                              -1.03322686717359, -0.0511041056535807, 1829.15146461355};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(longley.weight[i] / certified[i], 1, 2e-4) << i;
  EXPECT_NEAR(longley.bias[0] / -3482258.63459582, 1, 1e-5);
  EXPECT_NEAR(longley.scores.loss / (836424.055505915 / 16), 1, 2e-5);

  // Nobody comes near Filip's weights in float: the loss that is told is that of the weights that there are.
  TableShare filip = read_nist("Filip_poly.csv");
  Standardizer(world(), filip).apply(filip);
  const Fit started = fit(filip, {.lr = 0.1, .momentum = 0.98, .epochs = 2000});
  const auto table = whole(filip);
  double loss = 0;
  for (std::size_t row = 0; row < 82; ++row) {
    double error = started.bias[0] - table.targets[row];
    for (std::size_t i = 0; i < 10; ++i) error += double{started.weight[i]} * table.features[10 * row + i];
    loss += error * error / 82;
  }
  EXPECT_NEAR(started.scores.loss, loss, 1e-3 * loss);
  EXPECT_GT(started.scores.loss, 2 * 0.795851382172941E-03 / 82);
}

TEST(Cases, N09_WithoutAFeatureThereIsNothingToLearn) {
  EXPECT_THAT(refusal([] {
                return read_case("N09-bias-only.csv", {{}, {"y"}});
              }),
              AllOf(HasSubstr("N09-bias-only.csv"), HasSubstr("no feature is left")));
}

}  // namespace
}  // namespace ddp::test
