// Cases of the distribution over ranks: whatever their number, the answer is that of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/data/batch_source.hpp>
#include <linear_ddp/data/safetensors.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include <linear_ddp/optim/sgd.hpp>
#include "support/fit.hpp"
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

TEST(Cases, D01_FewerRowsThanRanks) {
  // w = 2 lr · Σxy / 3. With a row twice it would be 0.15.
  const Fit one = fit(read_case("D01-three-rows.csv", {{}, {"y"}}), {.lr = 0.01, .bias = false});
  EXPECT_THAT(one.weight, ElementsAre(FloatNear(0.56F / 3, 1e-7F)));
  EXPECT_EQ(one.training.rows, 3);
}

TEST(Cases, D02_AllRanksMakeEquallyManySteps) {
  const Fit many =
      fit(read_case("D03-five-rows.csv", {{}, {"y"}}), {.lr = 0.01, .epochs = 50, .global_batch = 2, .bias = false});
  EXPECT_THAT(all_gather(world(), many.training.steps), Each(50 * 3));
  EXPECT_EQ(many.training.rows, 50 * 5);
  EXPECT_THAT(many.weight, ElementsAre(FloatNear(2, 1e-5F)));
}

TEST(Cases, D03_EachRowCountsTheSame) {
  // x = 1 … 5, y = 2x: w = 2 lr · Σ 2x² / 5. A mean of the ranks' means would give 0.503 or 0.433.
  const Fit one = fit(read_case("D03-five-rows.csv", {{}, {"y"}}), {.lr = 0.01, .bias = false});
  EXPECT_THAT(one.weight, ElementsAre(FloatNear(0.44F, 1e-7F)));
  EXPECT_FLOAT_EQ(one.losses[0], 44);  // Σ 4x² / 5
}

TEST(Cases, D05_EachRowIsScoredOnce) {
  const auto share = read_case("D05-eval-five.csv", labels_of("label"));
  EXPECT_THAT(whole(share).targets, ElementsAre(0, 0, 1, 1, 0));
  const Fit best = fit(share, {.loss = LossKind::bce_with_logits, .lr = 0.5, .epochs = 500});
  EXPECT_THAT(best.bias, ElementsAre(FloatNear(-0.788715265624F, 1e-5F)));
  EXPECT_THAT(best.weight, ElementsAre(FloatNear(0.488945536706F, 1e-5F)));
  ASSERT_TRUE(best.scores.classes);
  EXPECT_NEAR(best.scores.classes->log_loss, 0.589897415388956, 1e-7);
  EXPECT_EQ(best.scores.classes->accuracy, 0.6);  // 0.625 or 0.667 with rows that fill shares up
  EXPECT_EQ(best.scores.rows, 5);
}

/// The rows of an epoch as all ranks use them, in the order of a single rank.
std::vector<std::int64_t> order_of_epoch(SamplerOptions options, std::int64_t epoch) {
  options.rank = world().rank();
  options.ranks = world().size();
  DistributedSampler sampler(options);
  sampler.set_epoch(epoch);
  std::vector<std::int64_t> order;
  for (std::int64_t step = 0; step < sampler.steps(); ++step) {
    std::vector<double> own;
    for (const std::int64_t row : sampler.rows_of_step(step)) own.push_back(static_cast<double>(row));
    const auto counts = all_gather(world(), static_cast<std::int64_t>(own.size()));
    const auto all = joined(own);
    // Place i of a step is rank i mod ranks'.
    for (std::int64_t i = 0; i < counts[0]; ++i) {
      std::int64_t begin = 0;
      for (const std::int64_t count : counts) {
        if (i < count) order.push_back(static_cast<std::int64_t>(all[static_cast<std::size_t>(begin + i)]));
        begin += count;
      }
    }
  }
  return order;
}

TEST(Cases, D06_AnEpochsOrderIsOfTheSeedAndTheEpochAlone) {
  const SamplerOptions options{.rows = 17, .global_batch = 6, .seed = 7};
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    // torch.randperm of seed + epoch.
    TorchGenerator generator(static_cast<std::uint64_t>(7 + epoch));
    const auto order = order_of_epoch(options, epoch);
    EXPECT_EQ(order, generator.randperm(17));
    EXPECT_EQ(order, order_of_epoch(options, epoch));
    auto sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t row = 0; row < 17; ++row) EXPECT_EQ(sorted.at(row), static_cast<std::int64_t>(row));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3U);
}

TEST(Cases, D07_ReplicasStartAndStayEqual) {
  const Dataset data = gather_dataset(world(), read_case("BASE.csv", {{}, {"y"}}));
  const auto device = make_cpu_device();
  Watchdog watchdog;
  const auto group = make_mpi_group(world(), watchdog);
  Model model(*device, {data.in, data.out, true});
  // Each rank draws other numbers; rank 0's are everyone's.
  std::vector<float> weight(2), bias(1);
  TorchGenerator generator(1 + static_cast<std::uint64_t>(world().rank()));
  init_linear(generator, 2, weight, bias);
  model.upload(0, weight);
  model.upload(1, bias);
  {
    DistributedDataParallel replica(world(), *device, *group, model);
    const auto hash = [&] { return static_cast<std::int64_t>(replica.require_equal_replicas()); };
    const std::int64_t first = hash();
    EXPECT_THAT(all_gather(world(), first), Each(first));
    std::vector<float> of_rank_0(2), ignored(1);
    TorchGenerator again(1);
    init_linear(again, 2, of_rank_0, ignored);
    EXPECT_EQ(model.download(0), of_rank_0);

    Sgd optimizer(*device, model, {.lr = 0.1});
    const auto source = make_dataset_batches(
        *device, data, {.sampler = {.rank = world().rank(), .ranks = world().size(), .global_batch = 3}});
    TrainingObserver silent;
    TrainerOptions run;
    run.epochs = 20;
    Trainer(*device, replica, optimizer, *source, silent).run(run);
    const std::int64_t last = hash();
    EXPECT_THAT(all_gather(world(), last), Each(last));
    EXPECT_NE(last, first);

    // What rank 0 saves is every rank's.
    const SharedFile file("model.safetensors", "");
    if (world().rank() == 0) {
      StoredFile stored;
      stored.tensors.push_back(make_f32("weight", {1, 2}, model.download(0)));
      write_safetensors(file.path(), stored);
    }
    MPI_Barrier(world().comm());
    EXPECT_EQ(read_safetensors(file.path()).at("weight").floats(), model.download(0));

    // And a drift would not stay unseen.
    if (world().size() > 1) {
      if (world().rank() == 1) model.upload(1, std::vector<float>{std::nextafter(model.download(1)[0], 9.F)});
      EXPECT_THROW(hash(), AgreedError);
    }
  }
  group->close();
}

/// Gradient descent on the mean of (y - w x - b)², written out in float64.
struct Descent {
  std::vector<double> weight{0, 0}, losses;
  double bias = 0;

  Descent(const WholeTable& table, double lr, int steps) {
    const auto rows = static_cast<std::size_t>(table.rows);
    for (int step = 0; step < steps; ++step) {
      double loss = 0, g[3] = {0, 0, 0};
      for (std::size_t row = 0; row < rows; ++row) {
        const double *x = &table.features[2 * row],
                     error = weight[0] * x[0] + weight[1] * x[1] + bias - table.targets[row];
        loss += error * error / static_cast<double>(rows);
        for (int i = 0; i < 3; ++i) g[i] += 2 * error * (i < 2 ? x[i] : 1) / static_cast<double>(rows);
      }
      losses.push_back(loss);
      weight[0] -= lr * g[0];
      weight[1] -= lr * g[1];
      bias -= lr * g[2];
    }
  }
};

TEST(Cases, D08_NothingDependsOnTheNumberOfRanks) {
  const auto share = read_case("BASE.csv", {{}, {"y"}});
  // The loss at zeros, and the gradient there, twice those of the half mean; eighths and sums of them are exact.
  const Fit step = fit(share, {.lr = 0.125});
  EXPECT_EQ(step.losses[0], 2 * 10.53515625F);
  EXPECT_THAT(step.weight, ElementsAre(0.25F * 5.578125F, 0.25F * -2.9609375F));
  EXPECT_THAT(step.bias, ElementsAre(0.25F * 1.03125F));
  const Descent expected(whole(share), 0.1, 5);
  const Fit five = fit(share, {.lr = 0.1, .epochs = 5});
  ASSERT_EQ(five.losses.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(five.losses[i], expected.losses[i], 1e-6 * expected.losses[i]) << i;
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(five.weight[i], expected.weight[i], 1e-6) << i;
  EXPECT_NEAR(five.bias[0], expected.bias, 1e-6);
}

TEST(Cases, D09_AClassMayBeAbsentOnARank) {
  const auto share = read_case("D09-sorted-classes.csv", labels_of("label"));
  EXPECT_THAT(share.labels, ElementsAre("0", "1", "2"));
  EXPECT_THAT(whole(share).targets, ElementsAre(0, 0, 1, 1, 2, 2));
  const Fit step = fit(share, {.loss = LossKind::cross_entropy, .lr = 0.1});
  EXPECT_FLOAT_EQ(step.losses[0], std::log(3.F));
  const float expected[] = {-1.F / 18, -1.F / 18, -1.F / 18, 17.F / 180, 1.F / 9, -7.F / 180};
  EXPECT_THAT(step.weight, ::testing::Pointwise(FloatNear(1e-7F), expected));
  EXPECT_THAT(step.bias, Each(FloatNear(0, 1e-8F)));
}

TEST(Cases, D11_AFeatureOfOneRankIsOneOfAll) {
  const auto share = read_case("D11-rank-columns.svm");
  EXPECT_THAT(share.feature_names, ElementsAre("1", "2", "3"));
  EXPECT_THAT(whole(share).features, ElementsAre(1, 0, 0, 2, 0, 0, 3, 0, 0, 1, 0, 3));
  EXPECT_THAT(whole(share).targets, ElementsAre(1, 2, 3, 7));
  const Fit best = fit(share, {.lr = 0.2, .epochs = 300, .bias = false});
  EXPECT_THAT(best.weight, ElementsAre(FloatNear(1, 1e-5F), 0.0F, FloatNear(2, 1e-5F)));
}

}  // namespace
}  // namespace ddp::test
