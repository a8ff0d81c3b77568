// Data-parallel gradients against Eigen in float64 on the joined batch, written as on paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <random>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/parallel/distributed_data_parallel.hpp>
#include "support/message_of.hpp"
#include "support/mpi_test_world.hpp"

namespace ddp {
namespace {

using test::world;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix random_matrix(std::mt19937& engine, Eigen::Index rows, Eigen::Index columns) {
  std::normal_distribution<float> normal;  // float values, exact in double
  return Matrix::NullaryExpr(rows, columns, [&] { return static_cast<double>(normal(engine)); });
}

std::vector<float> to_float(const Matrix& matrix) {
  std::vector<float> values(static_cast<std::size_t>(matrix.size()));
  std::transform(matrix.data(), matrix.data() + matrix.size(), values.begin(),
                 [](double value) { return static_cast<float>(value); });
  return values;
}

struct Gradients {
  Matrix weight, bias;
  double loss;
};

/// L = Σ weight_of_row · Σ_outputs (x Wᵀ + b - y)²
Gradients reference(const Matrix& x, const Matrix& y, const Matrix& w, const Matrix& b, const Eigen::VectorXd& row) {
  const Matrix residual = ((x * w.transpose()).rowwise() + b.row(0)) - y;
  const Matrix dy = 2 * (row.asDiagonal() * residual);
  return {dy.transpose() * x, dy.colwise().sum(), row.dot(residual.rowwise().squaredNorm())};
}

/// A job in which every rank knows all data, and trains on its own rows.
class DdpTest : public ::testing::Test {
 protected:
  static constexpr Eigen::Index in = 7, out = 3;

  /// rows_of(rank) rows on each rank.
  template <class RowsOf>
  void deal(RowsOf rows_of) {
    Eigen::Index total = 0;
    for (int rank = 0; rank < world().size(); ++rank) {
      begins.push_back(total);
      total += rows_of(rank);
    }
    begins.push_back(total);
    std::mt19937 engine(1);
    x = random_matrix(engine, total, in);
    y = random_matrix(engine, total, out);
    w = random_matrix(engine, out, in);
    b = random_matrix(engine, 1, out);
    model.upload(0, to_float(w));
    model.upload(1, to_float(b));
    const auto own = static_cast<std::size_t>(world().rank());
    own_x = to_float(x.middleRows(begins[own], begins[own + 1] - begins[own]));
    own_y = to_float(y.middleRows(begins[own], begins[own + 1] - begins[own]));
    batch = {begins[own + 1] - begins[own], own_x.data(), own_y.data()};
  }

  void expect_gradients(const Gradients& expected, float loss) {
    // Sums of some 30 products of numbers near 1, in float.
    constexpr double rounding = 1e-5;
    const auto& slots = model.layout().slots();
    const float* gradients = model.gradients().data();
    for (Eigen::Index i = 0; i < in * out; ++i) {
      EXPECT_NEAR(static_cast<double>(gradients[slots[0].offset + i]), expected.weight.data()[i], rounding);
    }
    for (Eigen::Index o = 0; o < out; ++o) {
      EXPECT_NEAR(static_cast<double>(gradients[slots[1].offset + o]), expected.bias.data()[o], rounding);
    }
    EXPECT_NEAR(static_cast<double>(loss), expected.loss, rounding * expected.loss);
  }

  Watchdog watchdog;
  std::unique_ptr<Device> device = make_cpu_device();
  std::unique_ptr<ProcessGroup> group = make_mpi_group(world(), watchdog);
  Model model{*device, {in, out, true}};
  Matrix x, y, w, b;
  std::vector<Eigen::Index> begins;
  std::vector<float> own_x, own_y;
  Batch batch;
};

TEST_F(DdpTest, ConstructionMakesEveryReplicaRankZeros) {
  model.upload(0, std::vector<float>(in * out, static_cast<float>(world().rank() + 5)));
  DistributedDataParallel replica(world(), *device, *group, model);
  EXPECT_THAT(model.download(0), ::testing::Each(5.0F));
  EXPECT_NO_THROW(replica.require_equal_replicas());
  group->close();
}

TEST_F(DdpTest, UnevenSharesGiveTheExactMeanOverRows) {
  deal([](int rank) { return rank == 0 ? 0 : 3 * rank + 1; });  // rank 0 has none
  if (world().size() == 1) GTEST_SKIP() << "needs 2 ranks: rank 0 has no rows";
  DistributedDataParallel replica(world(), *device, *group, model);
  replica.backward(batch, begins.back());
  const Eigen::VectorXd equal =
      Eigen::VectorXd::Constant(begins.back(), 1.0 / static_cast<double>(begins.back() * out));
  expect_gradients(reference(x, y, w, b, equal), replica.loss());
  group->close();
}

TEST_F(DdpTest, WithoutGlobalRowsTheRanksMeansAreAveraged) {
  deal([](int rank) { return 2 * rank + 1; });
  DistributedDataParallel replica(world(), *device, *group, model);
  replica.backward(batch);
  Eigen::VectorXd row(begins.back());
  for (int rank = 0; rank < world().size(); ++rank) {
    row.segment(begins[static_cast<std::size_t>(rank)], 2 * rank + 1)
        .setConstant(1.0 / (world().size() * (2.0 * rank + 1) * out));
  }
  expect_gradients(reference(x, y, w, b, row), replica.loss());
  group->close();
}

TEST_F(DdpTest, AStepsTwoHalvesAreTheStep) {
  deal([](int rank) { return 3 * rank + 2; });
  DistributedDataParallel replica(world(), *device, *group, model);
  model.backward(batch, 1 / static_cast<float>(begins.back() * out));
  const std::uint64_t before = group->reduced_bytes();
  replica.reduce();
  // With the loss and the request to stop.
  EXPECT_EQ(group->reduced_bytes() - before, 4 * static_cast<std::uint64_t>(model.layout().numel() + 2));
  const Eigen::VectorXd equal =
      Eigen::VectorXd::Constant(begins.back(), 1.0 / static_cast<double>(begins.back() * out));
  expect_gradients(reference(x, y, w, b, equal), replica.loss());
  group->close();
}

TEST_F(DdpTest, AStepWithoutAnyRowIsZero) {
  deal([](int) { return 0; });
  DistributedDataParallel replica(world(), *device, *group, model);
  replica.backward(batch);
  EXPECT_EQ(replica.loss(), 0);
  EXPECT_THAT(std::vector<float>(model.gradients().begin(), model.gradients().end()), ::testing::Each(0.0F));
  group->close();
}

TEST_F(DdpTest, ARequestToStopReachesAllRanksWithTheGradients) {
  deal([](int) { return 3; });
  DistributedDataParallel replica(world(), *device, *group, model);
  replica.backward(batch, begins.back());
  const float loss = replica.loss();
  EXPECT_FALSE(replica.stop_requested());
  if (world().rank() == world().size() - 1) replica.request_stop();
  for (int step = 0; step < 300; ++step) {  // from two ranks on the sum of ones is beyond float then
    replica.backward(batch, begins.back());
    EXPECT_TRUE(replica.stop_requested());
    EXPECT_EQ(replica.loss(), loss);
  }
  group->close();
}

TEST_F(DdpTest, ModelsOfDifferentShapeAreRefusedByName) {
  if (world().size() == 1) GTEST_SKIP() << "needs 2 ranks";
  Model other(*device, {in, world().rank() == 1 ? out + 1 : out, true});
  EXPECT_THAT(
      test::message_of<AgreedError>([&] { DistributedDataParallel(world(), *device, *group, other); }),
      ::testing::AllOf(::testing::HasSubstr("weight [4, 7] f32, bias [4] f32"), ::testing::HasSubstr("on rank 1")));
  group->close();
}

TEST_F(DdpTest, AReplicaThatDriftedIsFound) {
  if (world().size() == 1) GTEST_SKIP() << "needs 2 ranks";
  DistributedDataParallel replica(world(), *device, *group, model);
  if (world().rank() == 1) model.parameters()[0] = 1e-30F;
  EXPECT_THROW(replica.require_equal_replicas(), AgreedError);
  group->close();
}

}  // namespace
}  // namespace ddp
