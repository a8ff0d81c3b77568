// Which rows each rank uses at each step: PyTorch's recorded orders, and what holds for any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/sampler.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include "support/torch_run.hpp"

namespace ddp {
namespace {

using Rows = std::vector<std::int64_t>;

Rows rows_of_step(const DistributedSampler& sampler, std::int64_t step) {
  const auto rows = sampler.rows_of_step(step);
  return {rows.begin(), rows.end()};
}

/// All that one rank uses in an epoch, step after step.
Rows rows_of_epoch(const DistributedSampler& sampler) {
  Rows all;
  for (std::int64_t step = 0; step < sampler.steps(); ++step) {
    const auto rows = sampler.rows_of_step(step);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

Rows sorted(Rows rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

Rows counted(std::int64_t n) {
  Rows rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// The rows that all ranks together use at a step.
Rows union_of_step(SamplerOptions options, std::int64_t epoch, std::int64_t step) {
  Rows all;
  for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
    DistributedSampler sampler(options);
    sampler.set_epoch(epoch);
    const auto rows = sampler.rows_of_step(step);
    all.insert(all.end(), rows.begin(), rows.end());
    EXPECT_LE(std::abs(static_cast<std::int64_t>(rows.size()) * options.ranks - sampler.global_rows(step)),
              options.ranks)
        << "ranks differ by more than one row";
  }
  return sorted(all);
}

TEST(DistributedSampler, DealsRowsAsPyTorchRecorded) {
  std::ifstream stream(test::torch_reference_folder() + "/torch_rng.json");
  const auto recordings = nlohmann::json::parse(stream).at("samplers");
  ASSERT_EQ(recordings.size(), 162U);
  for (const auto& recording : recordings) {
    auto settings = recording;
    settings.erase("indices");
    SCOPED_TRACE(settings.dump());
    const auto expected = recording.at("indices").get<std::vector<Rows>>();
    for (const std::int64_t batch_of_rank : {1, 4}) {
      SamplerOptions options{.rows = recording.at("n").get<std::int64_t>(),
                             .rank = 0,
                             .ranks = recording.at("world_size").get<int>(),
                             .global_batch = 0,
                             .shuffle = recording.at("shuffle").get<bool>(),
                             .seed = recording.at("seed").get<std::uint64_t>(),
                             .drop_last = recording.at("drop_last").get<bool>(),
                             .repeat = true};
      options.global_batch = batch_of_rank * options.ranks;
      for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
        DistributedSampler sampler(options);
        sampler.set_epoch(recording.at("epoch").get<std::int64_t>());
        Rows rows = rows_of_epoch(sampler);
        if (!recording.at("truncated_to").is_null()) rows.resize(recording.at("truncated_to").get<std::size_t>());
        EXPECT_EQ(rows, expected[static_cast<std::size_t>(options.rank)]) << "rank " << options.rank;
        EXPECT_EQ(sampler.steps(),
                  (static_cast<std::int64_t>(rows_of_epoch(sampler).size()) + batch_of_rank - 1) / batch_of_rank);
      }
    }
  }
}

TEST(DistributedSampler, AStepIsTheSameRowsForAnyNumberOfRanks) {
  constexpr std::int64_t rows = 103, batch = 10, epoch = 2;
  const Rows order = TorchGenerator(7 + epoch).randperm(rows);
  for (const int ranks : {1, 2, 3, 4, 7, 16, 200}) {
    SCOPED_TRACE(ranks);
    const SamplerOptions options{.rows = rows, .rank = 0, .ranks = ranks, .global_batch = batch, .seed = 7};
    for (std::int64_t step = 0; step < 11; ++step) {
      const auto begin = order.begin() + step * batch;
      EXPECT_EQ(union_of_step(options, epoch, step), sorted({begin, std::min(begin + batch, order.end())})) << step;
    }
  }
}

TEST(DistributedSampler, AnEpochVisitsEachRowOnceAndEpochsDiffer) {
  for (const int ranks : {1, 3, 8}) {
    SCOPED_TRACE(ranks);
    std::set<Rows> orders;
    for (const std::int64_t epoch : {0, 1, 2, 3}) {
      Rows all;
      for (int rank = 0; rank < ranks; ++rank) {
        DistributedSampler sampler({.rows = 50, .rank = rank, .ranks = ranks, .global_batch = 12, .seed = 7});
        sampler.set_epoch(epoch);
        const Rows own = rows_of_epoch(sampler);
        all.insert(all.end(), own.begin(), own.end());
      }
      EXPECT_EQ(sorted(all), counted(50)) << "epoch " << epoch;
      orders.insert(all);
    }
    EXPECT_EQ(orders.size(), 4U);
  }
}

TEST(DistributedSampler, AnEpochCanBeRepeated) {
  DistributedSampler sampler({.rows = 50, .rank = 1, .ranks = 3, .global_batch = 12, .seed = 7});
  const Rows first = rows_of_epoch(sampler);
  sampler.set_epoch(1);
  EXPECT_NE(rows_of_epoch(sampler), first);
  sampler.set_epoch(0);
  EXPECT_EQ(rows_of_epoch(sampler), first);
}

TEST(DistributedSampler, FewerRowsThanRanksLeaveRanksWithoutRows) {
  for (int rank = 0; rank < 5; ++rank) {
    const DistributedSampler sampler({.rows = 3, .rank = rank, .ranks = 5, .global_batch = 5, .shuffle = false});
    ASSERT_EQ(sampler.steps(), 1);
    EXPECT_EQ(sampler.global_rows(0), 3);
    EXPECT_EQ(rows_of_step(sampler, 0), rank < 3 ? Rows{rank} : Rows{});
  }
}

TEST(DistributedSampler, CountsSteps) {
  const auto steps = [](std::int64_t rows, std::int64_t batch, bool repeat, bool drop_last) {
    const DistributedSampler sampler(
        {.rows = rows, .rank = 1, .ranks = 2, .global_batch = batch, .drop_last = drop_last, .repeat = repeat});
    return sampler.steps();
  };
  EXPECT_EQ(steps(10, 4, false, false), 3);
  EXPECT_EQ(steps(10, 4, false, true), 2);
  EXPECT_EQ(steps(12, 4, false, false), 3);
  EXPECT_EQ(steps(12, 4, false, true), 3);
  EXPECT_EQ(steps(3, 4, false, true), 0);
  EXPECT_EQ(steps(1, std::numeric_limits<std::int64_t>::max(), false, false), 1);
  EXPECT_EQ(steps(9, 4, true, false), 3) << "9 rows padded to 10";
  EXPECT_EQ(steps(9, 4, true, true), 2) << "9 rows cut to 8";
  EXPECT_EQ(steps(11, 4, true, true), 3) << "11 rows cut to 10: the last step is smaller, but equal on both ranks";
}

TEST(DistributedSampler, TellsTheRowsOfAllRanks) {
  const DistributedSampler sampler({.rows = 10, .rank = 0, .ranks = 3, .global_batch = 4, .shuffle = false});
  EXPECT_EQ(sampler.global_rows(0), 4);
  EXPECT_EQ(sampler.global_rows(1), 4);
  EXPECT_EQ(sampler.global_rows(2), 2);
  EXPECT_EQ(rows_of_step(sampler, 0), (Rows{0, 3}));
  EXPECT_EQ(rows_of_step(sampler, 1), (Rows{4, 7}));
  EXPECT_EQ(rows_of_step(sampler, 2), (Rows{8}));
}

// Ranks that record a step do so at the same one: a step's shape must not depend on the step.
TEST(DistributedSampler, FullStepsHaveTheSameShapeOnARank) {
  for (const std::int64_t batch : {1, 4, 7, 8, 10}) {
    for (int rank = 0; rank < 3; ++rank) {
      const DistributedSampler sampler({.rows = 100, .rank = rank, .ranks = 3, .global_batch = batch});
      for (std::int64_t step = 0; step < 100 / batch; ++step) {
        EXPECT_EQ(static_cast<std::int64_t>(sampler.rows_of_step(step).size()), (batch - rank + 2) / 3);
      }
      EXPECT_EQ(sampler.most_rows_of_step(), (batch - rank + 2) / 3);
    }
  }
}

TEST(DistributedSampler, RefusesOptionsOutOfRange) {
  const auto with = [](auto change) {
    SamplerOptions options{.rows = 10, .rank = 0, .ranks = 2, .global_batch = 4};
    change(options);
    return [options] { DistributedSampler{options}; };
  };
  EXPECT_NO_THROW(with([](SamplerOptions&) {})());
  EXPECT_THROW(with([](SamplerOptions& o) { o.rows = 0; })(), UseError);
  EXPECT_THROW(with([](SamplerOptions& o) { o.rows = -1; })(), UseError);
  EXPECT_THROW(with([](SamplerOptions& o) { o.global_batch = 0; })(), UseError);
  EXPECT_THROW(with([](SamplerOptions& o) { o.ranks = 0; })(), UseError);
  EXPECT_THROW(with([](SamplerOptions& o) { o.rank = 2; })(), UseError);
  EXPECT_THROW(with([](SamplerOptions& o) { o.rank = -1; })(), UseError);
}

}  // namespace
}  // namespace ddp
