// Standardisation over all ranks, the table put together, and the batches made of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/batch_source.hpp>
#include <linear_ddp/data/dataset.hpp>
#include "support/message_of.hpp"
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

TEST(Standardizer, RefusesColumnsWhoseWeightsFloatCannotHold) {
  const auto standardized = [](double factor, double offset) {
    TableShare share = ramp();
    share.path = "data.csv";
    for (std::size_t i = 2; i < share.features.size(); i += 3) share.features[i] = share.features[i] * factor + offset;
    return Standardizer(world(), share);
  };
  for (const double factor : {1e-28, 1e-10, 1e10, 1e28}) {
    // Sums of at most 25 terms, each rounded to float64.
    EXPECT_NEAR(standardized(factor, 0).scale()[2] / factor, 2 * deviation(), 1e-12);
  }
  // Sums, squares or weights overflow, or vanish: of the deviations, of the mean, of a constant.
  const std::pair<double, double> wide[] = {{1e300, 0},  {1e200, 0},   {1e50, 0},  {1e-50, 0}, {1e-200, 0},
                                            {1e-310, 0}, {1e20, 1e35}, {0, 1e200}, {0, 1e308}};
  for (const auto& [factor, offset] : wide) {
    try {
      static_cast<void>(standardized(factor, offset));
      ADD_FAILURE() << factor << ", " << offset << " not refused";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.status(), Status::wrong_use);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("data.csv: column 'slope'"));
    }
  }
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
  share.path = "data.csv";
  if (world().rank() == world().size() - 1) share.targets.back() = 1e39;
  try {
    static_cast<void>(gather_dataset(world(), share));
    ADD_FAILURE() << "not refused";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.status(), Status::wrong_use);
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("data.csv: column 'y', data row " + std::to_string(share.total_rows) + ": 1e+39"));
  }
}

TEST(GatherDataset, TakesPiecesToTheirRows) {
  // Two files of three and of two rows a rank: x is the row's number.
  const std::int64_t ranks = world().size(), rank = world().rank();
  TableShare share;
  share.feature_names = {"x"};
  share.target_names = {"y"};
  share.total_rows = 5 * ranks;
  share.rows = 5;
  share.pieces = {{3 * rank, 3}, {3 * ranks + 2 * rank, 2}};
  share.labels = {"a", "b"};
  for (const RowRange& piece : share.pieces) {
    for (std::int64_t row = piece.first; row < piece.first + piece.count; ++row) {
      share.features.push_back(static_cast<double>(row));
      share.targets.push_back(static_cast<double>(row % 2));
      share.weights.push_back(static_cast<double>(row) / 2);
    }
  }
  const Dataset data = gather_dataset(world(), share);
  EXPECT_THAT(data.classes, ::testing::ElementsAre("a", "b"));
  EXPECT_TRUE(data.notices.empty());
  EXPECT_EQ(data.x.is_shared(), ranks > 1);
  ASSERT_EQ(data.weights.size(), static_cast<std::size_t>(5 * ranks));
  for (std::size_t row = 0; row < data.weights.size(); ++row) {
    EXPECT_EQ(data.x[row], static_cast<float>(row));
    EXPECT_EQ(data.y[row], static_cast<float>(row % 2));
    EXPECT_EQ(data.weights[row], static_cast<float>(row) / 2);
  }
  share.weights.clear();
  EXPECT_TRUE(gather_dataset(world(), share).weights.empty());
  share.features.back() = 1e39;  // of the last row that this rank has
  EXPECT_THAT(test::message_of<AgreedError>([&] { static_cast<void>(gather_dataset(world(), share)); }),
              ::testing::HasSubstr("data row " + std::to_string(3 * ranks + 2) + ": 1e+39"));
}

/// Rows r = 0 … rows - 1 of x = (r, -r) and y = 2 r.
Dataset numbered(std::int64_t rows) {
  std::vector<float> x, y;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto r = static_cast<float>(row);
    x.insert(x.end(), {r, -r});
    y.push_back(2 * r);
  }
  return {.rows = rows, .in = 2, .out = 1, .x = std::move(x), .y = std::move(y)};
}

TEST(DatasetBatches, AnEpochWithoutAStepIsRefused) {
  const auto device = make_cpu_device();
  const Dataset data = numbered(5);
  SamplerOptions options{.rank = 0, .ranks = 1, .global_batch = 6, .drop_last = true};
  const auto message = [&] {
    return test::message_of<UseError>(
        [&] { static_cast<void>(make_dataset_batches(*device, data, {.sampler = options})); });
  };
  EXPECT_THAT(message(), ::testing::AllOf(::testing::HasSubstr("no step"), ::testing::HasSubstr("5 rows"),
                                          ::testing::HasSubstr("a step's 6"), ::testing::HasSubstr("--drop-last")));
  options.ranks = 7;
  options.repeat = true;
  EXPECT_THAT(message(), ::testing::HasSubstr("the 7 ranks"));
  options.drop_last = false;
  EXPECT_EQ(make_dataset_batches(*device, data, {.sampler = options})->steps_per_epoch(), 2);
}

TEST(DatasetBatches, HoldTheDataSetsRowsWhateverTheOptionsSay) {
  const auto device = make_cpu_device();
  const Dataset data = numbered(9);
  for (const std::int64_t global_batch : {2, 9}) {
    const auto batches = make_dataset_batches(*device, data, {.sampler = {.rows = 1000, .global_batch = global_batch}});
    EXPECT_EQ(batches->rows_per_epoch(), 9);
    std::vector<float> targets;
    for (std::int64_t step = 0; step < batches->steps_per_epoch(); ++step) {
      const Batch batch = batches->load(0, step).batch;
      for (std::int64_t row = 0; row < batch.rows; ++row) {
        EXPECT_EQ(batch.x[2 * row] * 2, batch.target[row]);
        EXPECT_EQ(batch.x[2 * row + 1] * -2, batch.target[row]);
      }
      targets.insert(targets.end(), batch.target, batch.target + batch.rows);
    }
    EXPECT_THAT(targets, ::testing::UnorderedElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16));
  }
}

TEST(SyntheticBatches, OfMoreThanAMachineCanCountAreRefused) {
  const auto device = make_cpu_device();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  const auto make = [&](std::int64_t rows, std::int64_t in, std::int64_t out, std::int64_t steps, int ranks) {
    static_cast<void>(
        make_synthetic_batches(*device, TorchGenerator(0), {.in = in, .out = out}, rows, steps, 1, ranks));
  };
  EXPECT_NO_THROW(make(20, 10, 10, most / 40, 2));
  // 10 times this is 2^64 + 4: x would have 4 values.
  EXPECT_THROW(make(1844674407370955162, 10, 10, 1, 1), UseError);
  EXPECT_THROW(make(1844674407370955162, 1, 10, 1, 1), UseError);
  EXPECT_THROW(make(most - 1, 1, 1, 1, 1), UseError);             // rounded up
  EXPECT_THROW(make(most / 2 + 1, 1, 1, 1, 1), UseError);         // 2^64 bytes
  EXPECT_THROW(make(1, 1, 1, most / 2, 3), UseError);             // the rows of all steps
  EXPECT_THROW(make(std::int64_t{1} << 50U, 1, 1, 1, 1), Error);  // no such memory
}

}  // namespace
}  // namespace ddp
