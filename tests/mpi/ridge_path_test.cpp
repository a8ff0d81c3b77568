// Scores of ridge fits on the rows held out from them, against fits by QR and their predictions, row by row, in
// float64, and against scikit-learn's.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include <linear_ddp/optim/ridge_path.hpp>
#include <linear_ddp/training/table_rows.hpp>
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using ::testing::HasSubstr;
using Scores = std::vector<std::vector<RidgeScore>>;

/// A table that every rank has whole; `part` is that of each row.
struct Table {
  MatrixXd x, y;
  VectorXd weight;  ///< empty: all 1
  std::vector<int> part;

  /// The ranks have 1, 2, … shares of the rows: consecutive ones.
  [[nodiscard]] TableShare share() const {
    const std::int64_t rank = world().rank(), size = world().size(), shares = size * (size + 1) / 2;
    TableShare own;
    own.feature_names.resize(static_cast<std::size_t>(x.cols()));
    own.target_names.resize(static_cast<std::size_t>(y.cols()));
    own.total_rows = x.rows();
    own.first_row = x.rows() * (rank * (rank + 1) / 2) / shares;
    const std::int64_t end = x.rows() * ((rank + 1) * (rank + 2) / 2) / shares;
    own.rows = end - own.first_row;
    for (std::int64_t row = own.first_row; row < end; ++row) {
      own.features.insert(own.features.end(), x.row(row).begin(), x.row(row).end());
      own.targets.insert(own.targets.end(), y.row(row).begin(), y.row(row).end());
      if (weight.size() > 0) own.weights.push_back(weight[row]);
    }
    return own;
  }

  [[nodiscard]] Scores scores(const std::vector<int>& held_out, const std::vector<double>& l2, bool bias = true) const {
    const TableShare own = share();
    const auto own_part =
        std::span(part).subspan(static_cast<std::size_t>(own.first_row), static_cast<std::size_t>(own.rows));
    return RidgePath(world(), rows_of(own), own_part, 1 + *std::max_element(part.begin(), part.end()))
        .scores(held_out, l2, bias);
  }
};

/// Features around 100, targets around 50, parts that follow each other row by row.
Table random_table(Index rows, Index in, Index out, int parts) {
  std::mt19937 generator(3);
  std::normal_distribution<double> normal;
  const auto draw = [&](Index m, Index n) {
    return MatrixXd(MatrixXd::NullaryExpr(m, n, [&] { return normal(generator); }));
  };
  Table table{draw(rows, in), {}, {}, {}};
  table.y = table.x * draw(in, out) + draw(rows, out);
  table.x.array() += 100;
  table.y.array() += 50;
  for (int row = 0; row < rows; ++row) table.part.push_back(row % parts);
  return table;
}

/// The same by definition: the rows, centred, above √λ · identity, whose least-squares solution of the smallest norm is
/// found by pivoted QR; each held-out row is predicted.
RidgeScore reference(const Table& table, int held, double l2, bool bias) {
  std::vector<Index> fit_rows, held_rows;
  for (Index row = 0; row < table.x.rows(); ++row) {
    (table.part[static_cast<std::size_t>(row)] == held ? held_rows : fit_rows).push_back(row);
  }
  const Index in = table.x.cols(), out = table.y.cols(), rows = std::ssize(fit_rows);
  const VectorXd all_weights = table.weight.size() > 0 ? table.weight : VectorXd::Ones(table.x.rows());
  const VectorXd weight = all_weights(fit_rows), held_weight = all_weights(held_rows);
  const MatrixXd x = table.x(fit_rows, Eigen::all), y = table.y(fit_rows, Eigen::all);
  const VectorXd mean_x = bias ? VectorXd(x.transpose() * weight / weight.sum()) : VectorXd::Zero(in),
                 mean_y = bias ? VectorXd(y.transpose() * weight / weight.sum()) : VectorXd::Zero(out);
  const double lambda = l2 / 2 * weight.sum() * static_cast<double>(out);
  MatrixXd a(rows + in, in), b = MatrixXd::Zero(rows + in, out);
  a << weight.cwiseSqrt().asDiagonal() * (x.rowwise() - mean_x.transpose()),
      std::sqrt(lambda) * MatrixXd::Identity(in, in);
  b.topRows(rows) = weight.cwiseSqrt().asDiagonal() * (y.rowwise() - mean_y.transpose());
  Eigen::CompleteOrthogonalDecomposition<MatrixXd> qr;
  qr.setThreshold(1e-12);
  const MatrixXd w = qr.compute(a).solve(b);
  const MatrixXd told =
      ((table.x(held_rows, Eigen::all).rowwise() - mean_x.transpose()) * w).rowwise() + mean_y.transpose();
  const MatrixXd right = table.y(held_rows, Eigen::all);
  const Eigen::RowVectorXd held_mean = held_weight.transpose() * right / held_weight.sum();
  const Eigen::RowVectorXd errors = held_weight.transpose() * (told - right).cwiseAbs2(),
                           deviations = held_weight.transpose() * (right.rowwise() - held_mean).cwiseAbs2();
  return {errors.sum() / (held_weight.sum() * static_cast<double>(out)),
          1 - errors.cwiseQuotient(deviations).sum() / static_cast<double>(out)};
}

/// The rounding of the sums, 10⁻¹⁶ · √rows of the targets' squares, is enlarged by the condition of the features'
/// products: with a bias about 10²; without one, for features around 100, up to 10⁶.
void expect_reference(const Table& table, const std::vector<int>& held_out, const std::vector<double>& l2,
                      bool bias = true, double with_bias = 1e-12) {
  const double tolerance = bias ? with_bias : 1e-9;
  const Scores scores = table.scores(held_out, l2, bias);
  ASSERT_EQ(scores.size(), held_out.size());
  for (std::size_t i = 0; i < held_out.size(); ++i) {
    ASSERT_EQ(scores[i].size(), l2.size());
    for (std::size_t j = 0; j < l2.size(); ++j) {
      SCOPED_TRACE(fmt::format("part {}, penalty {}, bias {}", held_out[i], l2[j], bias));
      const RidgeScore right = reference(table, held_out[i], l2[j], bias);
      EXPECT_NEAR(scores[i][j].mse, right.mse, tolerance * (1 + right.mse));
      EXPECT_NEAR(scores[i][j].r2, right.r2, tolerance * (1 + std::abs(right.r2)));
    }
  }
}

const std::vector<double> penalties{0, 1e-3, 0.1, 10};

TEST(RidgePath, AgreesWithPredictions) {
  for (const bool bias : {true, false}) {
    for (const bool weighted : {false, true}) {
      SCOPED_TRACE(weighted ? "weighted" : "unweighted");
      Table table = random_table(301, 7, 3, 5);
      if (weighted) table.weight = VectorXd::LinSpaced(301, 0, 2);  // a row counts nothing
      expect_reference(table, {0, 1, 2, 3, 4}, penalties, bias);
    }
  }
}

/// Parts one after the other: ranks without a row of some part. Their means are far apart.
TEST(RidgePath, AgreesForPartsThatAreOnFewRanks) {
  Table table = random_table(240, 4, 2, 6);
  std::sort(table.part.begin(), table.part.end());
  for (Index row = 0; row < 240; ++row) table.x.row(row).array() += table.part[static_cast<std::size_t>(row)];
  expect_reference(table, {0, 1, 2, 3, 4, 5}, penalties);
}

TEST(RidgePath, OneValidationSet) {
  expect_reference(random_table(3000, 3, 1, 2), {0, 1}, penalties);
  Table table = random_table(100, 4, 2, 2);
  expect_reference(table, {1}, penalties);
  for (std::size_t row = 0; row < 100; ++row) table.part[row] = row < 97 ? 0 : 1;
  expect_reference(table, {1}, penalties);
}

/// With less of a penalty its λ is below 10⁻⁸ of the largest eigenvalue: the others are 0 here, and digits are lost.
TEST(RidgePath, FewerRowsThanFeatures) {
  const std::vector<double> l2{0, 0.1, 10};
  for (const bool bias : {true, false}) expect_reference(random_table(12, 20, 2, 3), {0, 1, 2}, l2, bias);
}

/// Of dependent features the smallest weights, and a constant one has none.
TEST(RidgePath, DependentAndConstantFeatures) {
  for (const bool bias : {true, false}) {
    Table table = random_table(90, 6, 2, 3);
    table.x.col(2).setConstant(0.1);
    table.x.col(5) = table.x.col(0) - 2 * table.x.col(1);
    expect_reference(table, {0, 1, 2}, penalties, bias);
  }
}

/// A feature of 10⁻³ beside one of 10⁶: in the eigenvalues of both, nothing would be left of the small one's.
TEST(RidgePath, FeaturesOfVeryDifferentSizes) {
  Table table = random_table(90, 4, 2, 3);
  table.x.col(0) *= 1e-3;
  table.x.col(1) *= 1e6;
  expect_reference(table, {0, 1, 2}, {0, 1e-9, 1e-3, 10});
  table.x.col(3).setConstant(7);
  expect_reference(table, {0, 1, 2}, {0, 1e-9, 1e-3, 10});
}

/// The first part's features and targets are 10⁸ times those of the others: a difference of all rows' sums and the
/// part's would leave nothing of the others. (The errors are 1 % of the squares of which they are the difference.)
TEST(RidgePath, HeldOutRowsLeaveNoTraceInTheFit) {
  Table table = random_table(60, 3, 1, 3);
  for (Index row = 0; row < 60; row += 3) {
    table.x.row(row) *= 1e8;
    table.y.row(row) *= 1e8;
  }
  expect_reference(table, {0}, penalties, true, 1e-10);
}

TEST(RidgePath, ConstantTargets) {
  Table table = random_table(40, 3, 3, 2);
  table.y.col(0).setConstant(0.3);                                // met
  for (Index row = 0; row < 40; row += 2) table.y(row, 1) = 0.7;  // of the first part alone: not met
  const Scores scores = table.scores({0}, penalties);
  Table varying{table.x, table.y.col(2), {}, table.part};
  for (std::size_t i = 0; i < penalties.size(); ++i) {
    // Its penalty's λ is that of three outputs.
    EXPECT_NEAR(scores[0][i].r2, (1 + 0 + reference(varying, 0, 3 * penalties[i], true).r2) / 3, 1e-12);
  }
}

TEST(RidgePath, TargetsThatAreMetLeaveTheRoundingOfTheirSquares) {
  Table table = random_table(80, 3, 2, 4);
  table.y = table.x * MatrixXd::Ones(3, 2);
  for (const auto& scores : table.scores({0, 1, 2, 3}, {0})) {
    EXPECT_GE(scores[0].mse, 0);
    EXPECT_LE(scores[0].mse, 1e-12 * 3);  // 3 is the targets' variance
    EXPECT_NEAR(scores[0].r2, 1, 1e-12);
  }
}

TEST(RidgePath, OfOneRowThereIsNoR2) {
  Table table = random_table(10, 2, 1, 10);
  const Scores scores = table.scores({7}, {0.5});
  EXPECT_NEAR(scores[0][0].mse, reference(table, 7, 0.5, true).mse, 1e-12);
  EXPECT_TRUE(std::isnan(scores[0][0].r2));
}

/// scikit-learn 1.2.1's, of `file` with the last `out` columns as targets:
///   for fit, held in KFold(5).split(x):
///     told = Ridge(l2 / 2 * len(fit) * out).fit(x[fit], y[fit]).predict(x[held])
///     print(mean_squared_error(y[held], told), r2_score(y[held], told))
/// It solves by Cholesky without a correction, which leaves 10 digits.
void expect_scikit_learn(const std::string& file, const ColumnSelection& columns, const std::vector<double>& l2,
                         const std::vector<std::vector<RidgeScore>>& right) {
  const TableShare share = read_table(world(), dataset_path(file), {}, columns);
  std::vector<int> part;
  const std::int64_t longer = share.total_rows % 5, shorter_rows = share.total_rows / 5;
  for (std::int64_t row = share.first_row; row < share.first_row + share.rows; ++row) {
    const std::int64_t in_longer = longer * (shorter_rows + 1);
    part.push_back(
        static_cast<int>(row < in_longer ? row / (shorter_rows + 1) : longer + (row - in_longer) / shorter_rows));
  }
  const Scores scores = RidgePath(world(), rows_of(share), part, 5).scores(std::array{0, 1, 2, 3, 4}, l2, true);
  for (std::size_t i = 0; i < l2.size(); ++i) {
    for (std::size_t fold = 0; fold < 5; ++fold) {
      SCOPED_TRACE(fmt::format("fold {}, penalty {}", fold, l2[i]));
      EXPECT_NEAR(scores[fold][i].mse, right[i][fold].mse, 1e-9 * right[i][fold].mse);
      EXPECT_NEAR(scores[fold][i].r2, right[i][fold].r2, 1e-9 * std::max(1.0, std::abs(right[i][fold].r2)));
    }
  }
}

TEST(RidgePath, AgreesWithScikitLearnOnLinnerud) {
  expect_scikit_learn("linnerud.csv", {.targets = {"Weight", "Waist", "Pulse"}}, {0, 1},
                      {{{132.8479470908411, -1.1593280014298497},
                        {123.57702862012049, -0.2683521574545253},
                        {765.9532869445119, -19.110816936227163},
                        {484.5924044283557, -0.08956271490490204},
                        {466.06854347999735, -3.0277027605056666}},
                       {{125.85864142228667, -1.0156920863865102},
                        {121.51824698802007, -0.24071176353346813},
                        {754.1076617518621, -18.7656698548665},
                        {483.1582998199833, -0.08905977152731237},
                        {452.6550679281968, -2.915054620956802}}});
}

/// With moments from the path, of rows that its parts are: the solution is the rows' own.
TEST(RidgePath, ItsMomentsSaveTheSolutionAPass) {
  Table table = random_table(120, 5, 2, 4);
  for (const bool bias : {true, false}) {
    const TableShare own = table.share();
    LeastSquaresRows rows = rows_of(own);
    const LeastSquaresOptions options{.bias = bias, .ridge = 0.5};
    const auto right = solve_least_squares(world(), rows, options);
    rows.moments = RidgePath(world(), rows, std::span(table.part).subspan(static_cast<std::size_t>(own.first_row)), 4)
                       .moments(std::array{0, 1, 2, 3}, bias);
    int passes = 0;
    rows.each_block = [&passes, each_block = rows.each_block](const auto& visit) {
      ++passes;
      each_block(visit);
    };
    const auto solution = solve_least_squares(world(), rows, options);
    // Without a bias the condition is about 10³, which takes residuals; with one, it is near 1.
    EXPECT_EQ(passes, bias ? 0 : 1 + solution.refinements);
    // Refined until the change is 16 roundings, times the condition.
    const double tolerance = 1e-14 * right.condition;
    for (std::size_t i = 0; i < right.weight.size(); ++i) {
      EXPECT_NEAR(solution.weight[i], right.weight[i], tolerance) << i;
    }
    for (std::size_t i = 0; i < right.bias.size(); ++i) {
      EXPECT_NEAR(solution.bias[i], right.bias[i], 100 * tolerance);
    }
  }
}

TEST(RidgePath, RefusesWhatCannotBeScored) {
  Table table = random_table(10, 2, 1, 2);
  table.part.assign(10, 1);
  EXPECT_THAT(refusal([&] { return table.scores({0}, {1}); }), HasSubstr("part 0 (from 0)"));
  EXPECT_THAT(refusal([&] { return table.scores({1}, {1}); }), HasSubstr("nothing is left to fit"));
  table = random_table(10, 2, 1, 2);
  table.y(3, 0) = 1e200;
  EXPECT_THAT(refusal([&] { return table.scores({0}, {1}); }), HasSubstr("a target has values so large"));
  table.x(3, 1) = 1e200;
  EXPECT_THAT(refusal([&] { return table.scores({0}, {1}); }), HasSubstr("feature 1 (from 0)"));
}

}  // namespace
}  // namespace ddp::test
