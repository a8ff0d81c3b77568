// The loader of recorded PyTorch runs: all of them are there, and hold what later tests will compare with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/torch_run.hpp"

namespace ddp::test {
namespace {

using ::testing::ElementsAre;

const std::vector<TorchRun>& runs() {
  static const std::vector<TorchRun> all = find_torch_runs(LINEAR_DDP_TEST_DATA "/torch");
  return all;
}

const TorchRun& run_of(const std::string& name) {
  for (const TorchRun& run : runs()) {
    if (run.name == name) return run;
  }
  throw std::invalid_argument("no run " + name);
}

std::size_t numel(const std::vector<std::int64_t>& shape) {
  std::size_t product = 1;
  for (const std::int64_t extent : shape) product *= static_cast<std::size_t>(extent);
  return product;
}

TEST(TorchRun, FindsAllRunsInOrder) {
  ASSERT_EQ(runs().size(), 21U);
  EXPECT_EQ(runs().front().name, "accumulate_4");
  EXPECT_EQ(runs().back().name, "uneven_join_3ranks");
}

TEST(TorchRun, ShapesFollowFromTheSettings) {
  for (const TorchRun& run : runs()) {
    SCOPED_TRACE(run.name);
    ASSERT_EQ(run.losses.size(), std::size_t(run.world_size));
    for (int rank = 0; rank < run.world_size; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      const std::int64_t steps = run.steps_of(rank);
      EXPECT_EQ(run.losses[index].size(), std::size_t(steps));
      EXPECT_THAT(run.inputs[index].shape, ElementsAre(steps, run.batch, run.layers.front()));
      ASSERT_GE(run.targets[index].shape.size(), 2U);
      EXPECT_EQ(run.targets[index].shape[0], steps);
      EXPECT_EQ(run.targets[index].shape[1], run.batch);
      EXPECT_EQ(run.inputs[index].values.size(), numel(run.inputs[index].shape));
      EXPECT_EQ(run.x(rank, steps - 1).size(), std::size_t(run.batch * run.layers.front()));
      EXPECT_EQ(run.y(rank, steps - 1).size(), numel(run.targets[index].shape) / std::size_t(steps));
    }
    const std::size_t layers = run.layers.size() - 1;
    for (const auto* tensors : {&run.initial, &run.grad1, &run.final}) {
      EXPECT_EQ(tensors->size(), layers * (run.bias ? 2 : 1));
      for (std::size_t k = 0; k < layers; ++k) {
        EXPECT_THAT(tensors->at(std::to_string(k) + ".weight").shape, ElementsAre(run.layers[k + 1], run.layers[k]));
        if (!run.bias) continue;
        EXPECT_THAT(tensors->at(std::to_string(k) + ".bias").shape, ElementsAre(run.layers[k + 1]));
      }
    }
  }
}

TEST(TorchRun, ReadsSettings) {
  const TorchRun& nesterov = run_of("sgd_nesterov");
  EXPECT_EQ(nesterov.optimizer_numbers,
            (std::map<std::string, double>{{"lr", 0.03}, {"momentum", 0.9}, {"nesterov", 1}}));
  EXPECT_EQ(nesterov.steps, 60);
  EXPECT_THAT(run_of("uneven_join_3ranks").uneven, ElementsAre(20, 13, 7));
  EXPECT_EQ(run_of("cross_entropy_4ranks").classes, 5);
  EXPECT_EQ(run_of("schedule_cosine").schedule_numbers.at("eta_min"), 0.001);
  EXPECT_EQ(run_of("small_buckets").bucket_cap_mb, 0.01);
  EXPECT_DOUBLE_EQ(run_of("seed_one_step").losses[1][0], 1.3219174146652222);
}

}  // namespace
}  // namespace ddp::test
