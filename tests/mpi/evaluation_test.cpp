// Scores against sums written out here, on every number of ranks; the data are in the test.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/training/evaluation.hpp>
#include "support/backends.hpp"
#include "support/on_device.hpp"

namespace ddp::test {
namespace {

/// float outputs against double ones, of up to 8 terms of size 1
constexpr double rounding = 1e-6;

struct Problem {
  Dataset data;
  Floats weight, bias;
  std::int64_t outputs = 1;

  [[nodiscard]] double output(std::int64_t row, std::int64_t o) const {
    double sum = bias.empty() ? 0 : double{bias[static_cast<std::size_t>(o)]};
    for (std::int64_t i = 0; i < data.in; ++i) {
      sum += double{weight[static_cast<std::size_t>(o * data.in + i)]} *
             double{data.x[static_cast<std::size_t>(row * data.in + i)]};
    }
    return sum;
  }
  [[nodiscard]] double target(std::int64_t row, std::int64_t o = 0) const {
    return double{data.y[static_cast<std::size_t>(row * data.out + o)]};
  }
  [[nodiscard]] double row_weight(std::int64_t row) const {
    return data.weights.empty() ? 1.0 : double{data.weights[static_cast<std::size_t>(row)]};
  }
};

Problem make_problem(std::int64_t rows, std::int64_t in, std::int64_t outputs, Floats y, bool weighted) {
  Problem problem;
  problem.outputs = outputs;
  problem.data.rows = rows;
  problem.data.in = in;
  problem.data.out = static_cast<std::int64_t>(y.size()) / rows;
  problem.data.x = SharedArray(random_floats(rows * in, 1));
  problem.data.y = SharedArray(std::move(y));
  problem.weight = random_floats(outputs * in, 2);
  problem.bias = random_floats(outputs, 3);
  if (weighted) {
    Floats weights = random_floats(rows, 4);
    for (float& weight : weights) weight += 1.5F;
    problem.data.weights = SharedArray(std::move(weights));
  }
  return problem;
}

class Evaluation : public DeviceSuite {
 protected:
  Scores scores_of(const Problem& problem, const LossOptions& loss) {
    Model model(device(), {problem.data.in, problem.outputs, true}, loss);
    model.upload(0, problem.weight);
    model.upload(1, problem.bias);
    return evaluate(world(), device(), model, problem.data);
  }
};

TEST_P(Evaluation, OfNumbersIsThatOfTheDefinition) {
  for (const bool weighted : {false, true}) {
    for (const std::int64_t rows : {3, 50}) {  // 3: fewer than ranks
      Problem problem = make_problem(rows, 8, 2, random_floats(rows * 2, 5), weighted);
      // Targets far from zero: sums of squares of raw values would lose r2.
      for (std::int64_t row = 0; row < rows; ++row) problem.data.y.data()[row * 2 + 1] += 10000;
      problem.bias[1] += 10000;
      const Scores scores = scores_of(problem, {.kind = LossKind::mse});
      ASSERT_EQ(scores.targets.size(), 2U);
      EXPECT_EQ(scores.rows, rows);
      double all = 0;
      for (std::int64_t o = 0; o < 2; ++o) {
        double weights = 0, mean = 0, square = 0, absolute = 0, deviation = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          const double error = problem.output(row, o) - problem.target(row, o), weight = problem.row_weight(row);
          weights += weight;
          mean += weight * problem.target(row, o);
          square += weight * error * error;
          absolute += weight * std::abs(error);
        }
        mean /= weights;
        for (std::int64_t row = 0; row < rows; ++row) {
          deviation += problem.row_weight(row) * std::pow(problem.target(row, o) - mean, 2);
        }
        // An output near 10000 is a float: rounded by up to 5e-4.
        const double tolerance = o == 0 ? rounding : 2e-3;
        const TargetScores& got = scores.targets[static_cast<std::size_t>(o)];
        EXPECT_NEAR(got.mse, square / weights, tolerance);
        EXPECT_NEAR(got.rmse, std::sqrt(square / weights), tolerance);
        EXPECT_NEAR(got.mae, absolute / weights, tolerance);
        EXPECT_NEAR(got.r2, 1 - square / deviation, tolerance * 20);  // the deviations are that small
        all += square / weights / 2;
      }
      EXPECT_NEAR(scores.loss, all, 2e-3);
      EXPECT_DOUBLE_EQ(scores.score(), (scores.targets[0].r2 + scores.targets[1].r2) / 2);
    }
  }
}

TEST_P(Evaluation, OfAConstantTargetHasTheR2OfScikitLearn) {
  Problem problem = make_problem(7, 2, 1, Floats(7, 0.1F), false);
  problem.weight = {0, 0};
  problem.bias = {0.1F};
  EXPECT_EQ(scores_of(problem, {}).targets[0].r2, 1);
  problem.bias = {0.2F};
  EXPECT_EQ(scores_of(problem, {}).targets[0].r2, 0);
  EXPECT_TRUE(std::isnan(scores_of(make_problem(1, 2, 1, {0.5F}, false), {}).targets[0].r2));
}

TEST_P(Evaluation, OfTwoClassesIsThatOfTheDefinition) {
  for (const bool weighted : {false, true}) {
    for (const std::int64_t rows : {3, 60}) {
      Floats y;  // sorted: some ranks have rows of one class only
      for (std::int64_t row = 0; row < rows; ++row) y.push_back(3 * row < rows ? 0.0F : 1.0F);
      Problem problem = make_problem(rows, 2, 1, y, weighted);
      // Few values, that add up without rounding: logits of many rows are equal.
      for (std::int64_t i = 0; i < rows * 2; ++i) {
        problem.data.x.data()[i] = std::round(2 * problem.data.x.data()[i]) / 2;
      }
      problem.weight = {0.5F, 1};
      problem.bias = {-0.25F};
      const Scores scores = scores_of(problem, {.kind = LossKind::bce_with_logits});
      double weights = 0, log_loss = 0, right[2] = {0, 0}, of_class[2] = {0, 0}, wins = 0, pairs = 0;
      std::vector<std::int64_t> confusion(4);
      for (std::int64_t row = 0; row < rows; ++row) {
        const double z = problem.output(row, 0), p = 1 / (1 + std::exp(-z)), weight = problem.row_weight(row);
        const auto target = static_cast<std::size_t>(problem.target(row)), told = std::size_t{z > 0 ? 1U : 0U};
        weights += weight;
        log_loss -= weight * std::log(target == 1 ? p : 1 - p);
        of_class[target] += weight;
        if (told == target) right[target] += weight;
        ++confusion[target * 2 + told];
        for (std::int64_t other = 0; target == 1 && other < rows; ++other) {
          if (problem.target(other) == 1) continue;
          const double both = weight * problem.row_weight(other), lower = problem.output(other, 0);
          pairs += both;
          wins += both * (z > lower ? 1.0 : z == lower ? 0.5 : 0.0);
        }
      }
      ASSERT_TRUE(scores.classes);
      EXPECT_NEAR(scores.classes->log_loss, log_loss / weights, rounding);
      EXPECT_NEAR(scores.loss, log_loss / weights, rounding);
      EXPECT_NEAR(scores.classes->accuracy, (right[0] + right[1]) / weights, 1e-12);
      EXPECT_NEAR(scores.classes->balanced_accuracy, (right[0] / of_class[0] + right[1] / of_class[1]) / 2, 1e-12);
      EXPECT_NEAR(scores.classes->roc_auc, wins / pairs, 1e-12);
      EXPECT_EQ(scores.classes->confusion, confusion);
    }
  }
}

TEST_P(Evaluation, OfOneClassOfTwoHasNoArea) {
  Problem problem = make_problem(5, 2, 1, Floats(5, 1.0F), false);
  problem.weight = {0, 0};
  problem.bias = {1};
  const Scores scores = scores_of(problem, {.kind = LossKind::bce_with_logits});
  EXPECT_TRUE(std::isnan(scores.classes->roc_auc));
  EXPECT_EQ(scores.classes->balanced_accuracy, 1);  // the other class has no row
  problem.bias = {0};                               // a probability of 1/2 is the first class's, as in scikit-learn
  EXPECT_EQ(scores_of(problem, {.kind = LossKind::bce_with_logits}).classes->accuracy, 0);
}

TEST_P(Evaluation, OfSeveralClassesForgetsSmoothingAndClassWeights) {
  for (const std::int64_t rows : {2, 60}) {
    Floats y;
    for (std::int64_t row = 0; row < rows; ++row) y.push_back(row * 3 < rows ? 0.0F : 2.0F);  // 1 and 3 have no row
    const Problem problem = make_problem(rows, 8, 4, y, rows == 60);
    double weights = 0, log_loss = 0, right[4] = {}, of_class[4] = {}, smooth = 0, smooth_weights = 0;
    const std::vector<float> class_weight{1, 2, 3, 4};
    std::vector<std::int64_t> confusion(16);
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0, weight = problem.row_weight(row), all = 0;
      std::int64_t told = 0;
      for (std::int64_t c = 0; c < 4; ++c) {
        sum += std::exp(problem.output(row, c));
        if (problem.output(row, c) > problem.output(row, told)) told = c;
      }
      const auto target = static_cast<std::size_t>(problem.target(row));
      const auto negative_log = [&](std::int64_t c) { return std::log(sum) - problem.output(row, c); };
      for (std::int64_t c = 0; c < 4; ++c) {
        all += double{class_weight[static_cast<std::size_t>(c)]} * negative_log(c);
      }
      const double own = double{class_weight[target]};
      // torch.nn.CrossEntropyLoss(weight, label_smoothing=0.2, reduction="mean")
      smooth += weight * (0.8 * own * negative_log(static_cast<std::int64_t>(target)) + 0.2 / 4 * all);
      smooth_weights += weight * own;
      weights += weight;
      log_loss += weight * negative_log(static_cast<std::int64_t>(target));
      of_class[target] += weight;
      if (std::cmp_equal(told, target)) right[target] += weight;
      ++confusion[target * 4 + static_cast<std::size_t>(told)];
    }
    const Scores scores =
        scores_of(problem, {.kind = LossKind::cross_entropy, .label_smoothing = 0.2, .class_weight = class_weight});
    EXPECT_NEAR(scores.loss, smooth / smooth_weights, 2 * rounding);
    EXPECT_NEAR(scores.classes->log_loss, log_loss / weights, rounding);
    EXPECT_NEAR(scores.classes->accuracy, (right[0] + right[2]) / weights, 1e-12);
    EXPECT_NEAR(scores.classes->balanced_accuracy, (right[0] / of_class[0] + right[2] / of_class[2]) / 2, 1e-12);
    EXPECT_TRUE(std::isnan(scores.classes->roc_auc));
    EXPECT_EQ(scores.classes->confusion, confusion);
  }
}

DDP_INSTANTIATE_FOR_BACKENDS(Evaluation);

}  // namespace
}  // namespace ddp::test
