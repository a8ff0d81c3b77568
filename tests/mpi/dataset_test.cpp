// Standardisation over all ranks, and the table put together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/dataset.hpp>
#include "support/mpi_test_world.hpp"

namespace ddp {
namespace {

using test::world;

/// 2 n + 1 rows in all; row r has x = (1e8 + r, 14.62, -2 r) and y = 3 r.
TableShare ramp() {
  const int n = 3 * world().size();
  TableShare share;
  share.feature_names = {"big", "constant", "slope"};
  share.target_names = {"y"};
  share.total_rows = 2 * n + 1;
  share.first_row = share.total_rows * world().rank() / world().size();
  share.rows = share.total_rows * (world().rank() + 1) / world().size() - share.first_row;
  for (std::int64_t i = share.first_row; i < share.first_row + share.rows; ++i) {
    const auto r = static_cast<double>(i);
    share.features.insert(share.features.end(), {1e8 + r, 14.62, -2 * r});
    share.targets.push_back(3 * r);
  }
  return share;
}

/// Of 0 … 2n: the mean is n and the variance n (n + 1) / 3.
double deviation() {
  const double n = 3.0 * world().size();
  return std::sqrt(n * (n + 1) / 3);
}

TEST(Standardizer, FindsMeanAndDeviationOverAllRanks) {
  const Standardizer standardizer(world(), ramp());
  const double n = 3.0 * world().size();
  // Float64 sums of some tens of numbers of 1e8.
  EXPECT_NEAR(standardizer.mean()[0], 1e8 + n, 1e-6);
  EXPECT_NEAR(standardizer.scale()[0], deviation(), 1e-6);
  EXPECT_NEAR(standardizer.mean()[2], -2 * n, 1e-12);
  EXPECT_NEAR(standardizer.scale()[2], 2 * deviation(), 1e-12);
}

TEST(Standardizer, AConstantColumnBecomesExactlyZero) {
  TableShare share = ramp();
  const Standardizer standardizer(world(), share);
  EXPECT_EQ(standardizer.mean()[1], 14.62);
  EXPECT_EQ(standardizer.scale()[1], 1.0);
  standardizer.apply(share);
  for (std::size_t i = 1; i < share.features.size(); i += 3) EXPECT_EQ(share.features[i], 0.0);
}

TEST(Standardizer, FoldedWeightsGiveTheSameOutputsOnRawRows) {
  const TableShare raw = ramp();
  TableShare scaled = ramp();
  const Standardizer standardizer(world(), raw);
  standardizer.apply(scaled);
  // No weight on column 0: float weights cannot resolve its 1e8.
  const std::vector<float> weight{0, 3, -2, 0, 0, 4}, bias{7, -1};
  auto folded_weight = weight, folded_bias = bias;
  standardizer.fold_into(folded_weight, folded_bias);
  for (std::int64_t r = 0; r < raw.rows; ++r) {
    for (std::size_t o = 0; o < 2; ++o) {
      double expected = static_cast<double>(bias[o]), actual = static_cast<double>(folded_bias[o]);
      for (std::size_t i = 0; i < 3; ++i) {
        expected += static_cast<double>(weight[o * 3 + i]) * scaled.features[static_cast<std::size_t>(r) * 3 + i];
        actual += static_cast<double>(folded_weight[o * 3 + i]) * raw.features[static_cast<std::size_t>(r) * 3 + i];
      }
      EXPECT_NEAR(actual, expected, 1e-5);  // three float roundings of numbers below 50
    }
  }
  standardizer.unfold(folded_weight, folded_bias);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(folded_weight[i], weight[i]);
  for (std::size_t o = 0; o < 2; ++o) EXPECT_NEAR(folded_bias[o], bias[o], 1e-5);
}

TEST(Standardizer, NeedsABiasToFoldMeansInto) {
  const Standardizer standardizer(world(), ramp());
  std::vector<float> weight{1, 1, 1}, no_bias;
  EXPECT_THROW(standardizer.fold_into(weight, no_bias), UseError);
}

TEST(GatherDataset, PutsTheSharesTogetherInOrder) {
  const Dataset data = gather_dataset(world(), ramp());
  ASSERT_EQ(data.rows, 6 * world().size() + 1);
  ASSERT_EQ(data.in, 3);
  ASSERT_EQ(data.out, 1);
  for (std::int64_t r = 0; r < data.rows; ++r) {
    EXPECT_EQ(data.x[static_cast<std::size_t>(3 * r) + 2], static_cast<float>(-2 * r));
    EXPECT_EQ(data.y[static_cast<std::size_t>(r)], static_cast<float>(3 * r));
  }
}

TEST(GatherDataset, RefusesWhatFloatCannotHold) {
  TableShare share = ramp();
  if (world().rank() == world().size() - 1) share.targets.back() = 1e39;
  try {
    static_cast<void>(gather_dataset(world(), share));
    ADD_FAILURE() << "not refused";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.status(), Status::wrong_use);
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("column y"), ::testing::HasSubstr("1e+39")));
  }
}

}  // namespace
}  // namespace ddp
