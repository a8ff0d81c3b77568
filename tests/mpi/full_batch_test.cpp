// Full-batch objectives of several heads on parts of the rows, against Eigen in float64, and their minima by L-BFGS
// against closed forms.
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <random>

#include <linear_ddp/training/full_batch.hpp>
#include "support/backends.hpp"
#include "support/eigen.hpp"

namespace ddp::test {
namespace {

constexpr std::int64_t rows = 61, in = 5, out = 3;

class FullBatches : public DeviceSuite {
 protected:
  void SetUp() override {
    DeviceSuite::SetUp();
    if (IsSkipped()) return;
    group_ = GetParam() == Backend::cpu ? make_mpi_group(world(), watchdog_)
                                        : make_nccl_group(world(), device(), watchdog_, std::chrono::seconds(60));
  }
  void TearDown() override {
    if (group_) group_->close();
  }
  ProcessGroup& group() { return *group_; }

 private:
  Watchdog watchdog_{std::chrono::seconds(120), [](const std::string&) { std::abort(); }};
  std::unique_ptr<ProcessGroup> group_;
};
DDP_INSTANTIATE_FOR_BACKENDS(FullBatches);

Dataset data_set() {
  Dataset data{.rows = rows, .in = in, .out = out, .x = random_floats(rows * in, 1), .y = random_floats(rows * out, 2)};
  Floats weights = random_floats(rows, 3);
  for (float& weight : weights) weight = 1 + weight / 2;
  data.weights = SharedArray(std::move(weights));
  return data;
}

Matrix matrix_of(const SharedArray& values, std::int64_t columns) {
  return matrix(Floats(values.data(), values.data() + values.size()), rows, columns);
}

std::vector<int> thirds() {
  std::vector<int> part(rows);
  for (std::size_t row = 0; row < part.size(); ++row) part[row] = static_cast<int>(row * row % 3);  // uneven
  return part;
}

/// The weighted rows that are not in a part.
struct Rows {
  Matrix x, y;
  Eigen::VectorXd weight;
  explicit Rows(int without) : x(matrix_of(data_set().x, in)), y(matrix_of(data_set().y, out)) {
    weight = matrix_of(data_set().weights, 1).col(0);
    const auto part = thirds();
    for (Eigen::Index row = 0; row < rows; ++row) {
      if (part[static_cast<std::size_t>(row)] == without) weight[row] = 0;
    }
  }
};

TEST_P(FullBatches, ValuesAndGradientsOfHeads) {
  const Dataset data = data_set();
  const auto part = thirds();
  const ResidentRows resident(device(), data, {}, world().rank(), world().size(), part);
  for (const int without : {-1, 0, 1, 2}) {
    const Rows right(without);
    FullBatchObjective objective(device(), group(), {in, out, true}, {}, resident.without(without));
    EXPECT_EQ(objective.rows(), (right.weight.array() > 0).count());
    for (const std::size_t count : {3U, 1U, 2U}) {  // heads come and go
      std::vector<std::vector<double>> points(count), gradients(count);
      std::vector<FullBatchObjective::Head> heads;
      for (std::size_t head = 0; head < count; ++head) {
        const Floats at = random_floats(objective.numel(), 10 + static_cast<unsigned>(head));
        points[head].assign(at.begin(), at.end());
        gradients[head].resize(points[head].size());
        heads.push_back({points[head], gradients[head], 0.1 * static_cast<double>(head)});
      }
      objective.evaluate(heads);
      for (std::size_t head = 0; head < count; ++head) {
        const auto w = Eigen::Map<const Matrix>(points[head].data(), out, in);
        const auto b = Eigen::Map<const Matrix>(points[head].data() + out * in, 1, out);
        const Matrix error = ((right.x * w.transpose()).rowwise() + b.row(0)) - right.y;
        const double losses = right.weight.sum() * out, l2 = heads[head].l2;
        const double value = right.weight.dot(error.rowwise().squaredNorm()) / losses + l2 / 2 * w.squaredNorm();
        const Matrix dy = 2 / losses * (right.weight.asDiagonal() * error);
        const Matrix dw = dy.transpose() * right.x + l2 * w, db = dy.colwise().sum();
        EXPECT_NEAR(heads[head].value / value, 1, 1e-6);  // float outputs and gradients, of some dozen addends
        EXPECT_LE((Eigen::Map<const Matrix>(gradients[head].data(), out, in) - dw).cwiseAbs().maxCoeff(), 1e-6);
        EXPECT_LE((Eigen::Map<const Matrix>(gradients[head].data() + out * in, 1, out) - db).cwiseAbs().maxCoeff(),
                  1e-6);
      }
    }
  }
}

TEST_P(FullBatches, HeadsThatAdvanceTogetherReachTheirOwnMinima) {
  const Dataset data = data_set();
  const ResidentRows resident(device(), data, {}, world().rank(), world().size());
  FullBatchObjective objective(device(), group(), {in, out, true}, {}, resident.all());
  std::vector<HeadSearch> heads;
  for (const double l2 : {10.0, 0.1, 0.0}) {
    heads.push_back({l2, std::vector<double>(static_cast<std::size_t>(objective.numel()), 0.0)});
  }
  minimize_together(objective, heads, {.gradient_tolerance = 1e-7, .rounding = 1e-7});
  // Rows with a 1 behind them; the penalty leaves the bias alone.
  const Rows all(-1);
  Matrix x(rows, in + 1);
  x << all.x, Eigen::VectorXd::Ones(rows);
  for (const HeadSearch& head : heads) {
    Matrix gram = 2 / (all.weight.sum() * out) * x.transpose() * all.weight.asDiagonal() * x;
    const Matrix right = 2 / (all.weight.sum() * out) * x.transpose() * all.weight.asDiagonal() * all.y;
    for (Eigen::Index i = 0; i < in; ++i) gram(i, i) += head.l2;
    const Matrix solution = gram.ldlt().solve(right);
    for (Eigen::Index o = 0; o < out; ++o) {
      for (Eigen::Index i = 0; i < in; ++i) {
        EXPECT_NEAR(head.x[static_cast<std::size_t>(o * in + i)], solution(i, o), 2e-6) << head.l2;
      }
      EXPECT_NEAR(head.x[static_cast<std::size_t>(out * in + o)], solution(in, o), 2e-6) << head.l2;
    }
  }
  std::vector<HeadSearch> again{heads[0], {0.1, std::vector<double>(heads[1].x.size(), 0.5)}};
  minimize_together(objective, again, {.gradient_tolerance = 1e-6, .rounding = 1e-7});
  EXPECT_EQ(again[0].result.last.evaluations, 1) << "it is there, and drops out";
  for (std::size_t i = 0; i < heads[1].x.size(); ++i) EXPECT_NEAR(again[1].x[i], heads[1].x[i], 2e-5);
}

TEST_P(FullBatches, APathInGroupsIsThatOfAllTogether) {
  const Dataset data = data_set();
  const ResidentRows resident(device(), data, {}, world().rank(), world().size());
  FullBatchObjective objective(device(), group(), {in, out, true}, {}, resident.all());
  const std::vector<double> l2{0.1, 10, 0, 1}, start(static_cast<std::size_t>(objective.numel()), 0.5);
  const LbfgsOptions options{.gradient_tolerance = 1e-7, .rounding = 1e-7};
  const auto together = minimize_path(objective, l2, start, l2.size(), options);
  for (const std::size_t at_once : {1U, 3U}) {
    const auto groups = minimize_path(objective, l2, start, at_once, options);
    for (std::size_t i = 0; i < l2.size(); ++i) {
      EXPECT_EQ(groups[i].l2, l2[i]);
      for (std::size_t j = 0; j < start.size(); ++j) EXPECT_NEAR(groups[i].x[j], together[i].x[j], 5e-6) << l2[i];
    }
  }
  // The second begins where the first has come to.
  const auto from_minimum = minimize_path(objective, std::vector{0.1, 0.1}, start, 1, options);
  EXPECT_LT(from_minimum[1].result.last.evaluations, from_minimum[0].result.last.evaluations);
}

TEST(SelectRows, KeepsTheirOrder) {
  Dataset data{.rows = 4, .in = 2, .out = 1, .x = Floats{0, 1, 10, 11, 20, 21, 30, 31}, .y = Floats{0, 1, 2, 3}};
  data.weights = SharedArray(Floats{5, 6, 7, 8});
  const Dataset some = select_rows(world(), data, {3, 1, 2});
  const auto values = [](const SharedArray& array) { return Floats(array.data(), array.data() + array.size()); };
  EXPECT_EQ(some.rows, 3);
  EXPECT_EQ(values(some.x), (Floats{30, 31, 10, 11, 20, 21}));
  EXPECT_EQ(values(some.y), (Floats{3, 1, 2}));
  EXPECT_EQ(values(some.weights), (Floats{8, 6, 7}));
}

}  // namespace
}  // namespace ddp::test
