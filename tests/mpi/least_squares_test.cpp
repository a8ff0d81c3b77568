// Least squares solved directly, against optima computed with exact rational arithmetic on the numbers of the files
// (least_squares.json), closed forms, and Eigen's SVD.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/SVD>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include <linear_ddp/optim/least_squares.hpp>
#include <linear_ddp/training/table_rows.hpp>
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Method = LeastSquaresSolution::Method;

/// The log relative error: about how many digits are right. 17 is a value without any error.
double digits(double value, double right) {
  if (value == right) return 17;
  return right == 0 ? -std::log10(std::abs(value)) : -std::log10(std::abs((value - right) / right));
}

double fewest_digits(const std::vector<double>& values, const std::vector<double>& right) {
  EXPECT_EQ(values.size(), right.size());
  double fewest = 17;
  for (std::size_t i = 0; i < right.size(); ++i) fewest = std::min(fewest, digits(values.at(i), right[i]));
  return fewest;
}

std::vector<double> flat(const nlohmann::json& rows) {
  std::vector<double> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  return values;
}

TEST(LeastSquares, HasEveryDigitOfTheOptima) {
  const auto optima = nlohmann::json::parse(std::ifstream(data_path("datasets/least_squares.json")));
  ASSERT_EQ(optima.size(), 13U);
  for (const auto& [name, right] : optima.items()) {
    SCOPED_TRACE(name);
    ColumnSelection columns;
    columns.targets = right["targets"].get<std::vector<std::string>>();
    const TableShare share = read_table(world(), dataset_path(right["file"]), {}, columns);
    const auto solution = solve_least_squares(world(), rows_of(share),
                                              {.bias = right["bias"], .extra_precise = true, .standard_errors = true});
    EXPECT_EQ(solution.method, Method::refined_qr);
    EXPECT_TRUE(solution.converged);
    double coefficients = fewest_digits(solution.weight, flat(right["weight"]));
    if (right["bias"]) coefficients = std::min(coefficients, fewest_digits(solution.bias, right["bias_values"]));
    double errors = fewest_digits(solution.weight_errors, flat(right["weight_errors"]));
    if (right["bias"]) errors = std::min(errors, fewest_digits(solution.bias_errors, right["bias_errors"]));
    EXPECT_GE(coefficients, 15);
    EXPECT_GE(errors, 12);
    EXPECT_GE(fewest_digits(solution.square_sums, right["square_sums"]), 12);
    if (world().rank() == 0) {
      fmt::print("{:9}  coefficients {:4.1f} digits, standard errors {:4.1f}; condition {:7.1e}, {} rounds\n", name,
                 coefficients, errors, solution.condition, solution.refinements);
    }
  }
}

/// A table in memory, of which each rank has an even share.
struct Table {
  MatrixXd x, y;
  VectorXd weight;  ///< empty: all 1

  [[nodiscard]] TableShare share() const {
    TableShare own;
    for (Eigen::Index i = 0; i < x.cols(); ++i) own.feature_names.push_back(fmt::format("x{}", i));
    for (Eigen::Index i = 0; i < y.cols(); ++i) own.target_names.push_back(fmt::format("y{}", i));
    own.total_rows = x.rows();
    own.first_row = x.rows() * world().rank() / world().size();
    const std::int64_t end = x.rows() * (world().rank() + 1) / world().size();
    own.rows = end - own.first_row;
    for (std::int64_t row = own.first_row; row < end; ++row) {
      for (Eigen::Index i = 0; i < x.cols(); ++i) own.features.push_back(x(row, i));
      for (Eigen::Index i = 0; i < y.cols(); ++i) own.targets.push_back(y(row, i));
      if (weight.size() > 0) own.weights.push_back(weight[row]);
    }
    return own;
  }
};

Table random_table(Eigen::Index rows, Eigen::Index in, Eigen::Index out, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  const auto draw = [&](Eigen::Index m, Eigen::Index n) {
    return MatrixXd(MatrixXd::NullaryExpr(m, n, [&] { return normal(generator); }));
  };
  Table table{draw(rows, in), {}, {}};
  table.y = table.x * draw(in, out) + draw(rows, out);
  table.y.rowwise() += Eigen::RowVectorXd::LinSpaced(out, 3, 5);
  return table;
}

/// The minimum of the smallest norm by Eigen's SVD of the centred columns, with rows of √λ for the penalty.
struct Reference {
  MatrixXd w;  ///< [in, out]
  VectorXd bias;

  Reference(const Table& table, bool has_bias, double ridge) {
    const Eigen::Index in = table.x.cols(), rows = table.x.rows();
    const VectorXd weight = table.weight.size() > 0 ? table.weight : VectorXd::Ones(rows);
    const VectorXd mean_x = has_bias ? VectorXd(table.x.transpose() * weight / weight.sum()) : VectorXd::Zero(in);
    const VectorXd mean_y =
        has_bias ? VectorXd(table.y.transpose() * weight / weight.sum()) : VectorXd::Zero(table.y.cols());
    MatrixXd a(rows + in, in), b = MatrixXd::Zero(rows + in, table.y.cols());
    a << weight.cwiseSqrt().asDiagonal() * (table.x.rowwise() - mean_x.transpose()),
        std::sqrt(ridge) * MatrixXd::Identity(in, in);
    b.topRows(rows) = weight.cwiseSqrt().asDiagonal() * (table.y.rowwise() - mean_y.transpose());
    Eigen::JacobiSVD<MatrixXd> svd(a, Eigen::ComputeThinU | Eigen::ComputeThinV);
    svd.setThreshold(1e-12);
    w = svd.solve(b);
    bias = mean_y - w.transpose() * mean_x;
  }
};

void expect_near(const LeastSquaresSolution& solution, const Reference& right, double tolerance) {
  const Eigen::Map<const MatrixXd> w(solution.weight.data(), right.w.rows(), right.w.cols());
  EXPECT_LE((w - right.w).norm(), tolerance * right.w.norm());
  for (std::size_t o = 0; o < solution.bias.size(); ++o) {
    EXPECT_NEAR(solution.bias[o], right.bias[static_cast<Eigen::Index>(o)], tolerance * (1 + right.bias.norm()));
  }
}

TEST(LeastSquares, AgreesWithTheSvd) {
  for (const bool bias : {true, false}) {
    for (const double ridge : {0.0, 7.5}) {
      for (const bool weighted : {false, true}) {
        for (const bool extra_precise : {false, true}) {
          SCOPED_TRACE(fmt::format("bias {}, ridge {}, weights {}, precise {}", bias, ridge, weighted, extra_precise));
          Table table = random_table(101, 6, 3);
          table.x.col(2) *= 1e5;
          table.x.col(4).array() += 1e4;
          if (weighted) table.weight = VectorXd::LinSpaced(101, 0, 2);  // a row counts nothing
          const TableShare share = table.share();
          const auto solution = solve_least_squares(world(), rows_of(share), {bias, ridge, extra_precise});
          EXPECT_EQ(solution.method, extra_precise ? Method::refined_qr : Method::normal_equations);
          EXPECT_TRUE(solution.converged);
          EXPECT_EQ(solution.bias.size(), bias ? 3U : 0U);
          expect_near(solution, Reference(table, bias, ridge), 1e-10);
        }
      }
    }
  }
}

/// Where columns are far from dependent, the rows are read once, unless next to nothing of the targets is left.
TEST(LeastSquares, SquaresLeftAreThoseOfTheRows) {
  for (const double noise : {1.0, 1e-5}) {
    Table table = random_table(200, 4, 2);
    const MatrixXd exact = table.x * MatrixXd::Ones(4, 2);
    table.y = exact + noise * (table.y - exact);
    const TableShare share = table.share();
    LeastSquaresRows rows = rows_of(share);
    int passes = 0;
    rows.each_block = [&passes, each_block = rows.each_block](const auto& visit) {
      ++passes;
      each_block(visit);
    };
    const auto solution = solve_least_squares(world(), rows, {.ridge = 2});
    EXPECT_LE(solution.condition, 16);
    EXPECT_TRUE(solution.converged);
    EXPECT_EQ(passes, noise == 1 ? 1 : 2 + solution.refinements);
    const Reference right(table, true, 2);
    expect_near(solution, right, 1e-14);
    const MatrixXd errors = (table.y - table.x * right.w).rowwise() - right.bias.transpose();
    for (Eigen::Index o = 0; o < 2; ++o) {
      EXPECT_GE(digits(solution.square_sums[static_cast<std::size_t>(o)], errors.col(o).squaredNorm()), 11);
    }
  }
}

TEST(LeastSquares, NormalEquationsAreCorrectedWithTheRows) {
  Table table = random_table(300, 5, 1);
  table.x.col(4) = table.x.col(3) + 1e-5 * table.x.col(4);  // a condition of 10⁵: its square leaves 6 digits
  const TableShare share = table.share();
  const auto solution = solve_least_squares(world(), rows_of(share), {});
  EXPECT_EQ(solution.method, Method::normal_equations);
  EXPECT_GE(solution.refinements, 1);
  EXPECT_TRUE(solution.converged);
  const auto refined = solve_least_squares(world(), rows_of(share), {.extra_precise = true});
  EXPECT_GE(fewest_digits(solution.weight, refined.weight), 10);
}

TEST(LeastSquares, NearlyDependentColumnsAreSolvedByQr) {
  Table table = random_table(300, 5, 2);
  table.x.col(4) = table.x.col(3) + 1e-9 * table.x.col(4);
  const TableShare share = table.share();
  const auto solution = solve_least_squares(world(), rows_of(share), {});
  EXPECT_EQ(solution.method, Method::qr);
  EXPECT_EQ(solution.rank, 5);
  EXPECT_GT(solution.condition, 1e8);
  EXPECT_LT(solution.condition, 1e11);
  const auto refined = solve_least_squares(world(), rows_of(share), {.extra_precise = true});
  EXPECT_TRUE(refined.converged);
  EXPECT_GE(fewest_digits(solution.weight, refined.weight), 5);
}

TEST(LeastSquares, OfDependentColumnsTheSmallestWeights) {
  for (const bool bias : {true, false}) {
    for (const bool extra_precise : {false, true}) {
      SCOPED_TRACE(fmt::format("bias {}, precise {}", bias, extra_precise));
      Table table = random_table(60, 6, 2);
      table.x.col(5) = 100 * table.x.col(0) - table.x.col(1);
      table.x.col(3).setConstant(0.1);  // dependent on the bias
      const TableShare share = table.share();
      const auto solution = solve_least_squares(
          world(), rows_of(share), {.bias = bias, .extra_precise = extra_precise, .standard_errors = true});
      EXPECT_EQ(solution.method, Method::qr);
      EXPECT_EQ(solution.rank, bias ? 4 : 5);
      EXPECT_EQ(solution.dependent.size(), bias ? 2U : 1U);
      EXPECT_TRUE(std::isinf(solution.condition));
      EXPECT_TRUE(std::isnan(solution.weight_errors.front()));
      expect_near(solution, Reference(table, bias, 0), 1e-10);
    }
  }
}

TEST(LeastSquares, MoreColumnsThanRows) {
  const Table table = random_table(5, 8, 1);
  const TableShare share = table.share();
  const auto solution = solve_least_squares(world(), rows_of(share), {});
  EXPECT_EQ(solution.rank, 4);
  EXPECT_NEAR(solution.square_sums.front(), 0, 1e-24);
  expect_near(solution, Reference(table, true, 0), 1e-10);
  expect_near(solve_least_squares(world(), rows_of(share), {.ridge = 0.5}), Reference(table, true, 0.5), 1e-12);
}

/// y = 2 x + 1 exactly, far from 0: sums of squares of raw values would leave nothing.
TEST(LeastSquares, FarFromZero) {
  Table table{VectorXd::LinSpaced(64, 1e9, 1e9 + 63), {}, {}};
  table.y = 2 * table.x.array() + 1;
  const TableShare share = table.share();
  const auto solution = solve_least_squares(world(), rows_of(share), {});
  EXPECT_GE(digits(solution.weight.front(), 2), 15);
  EXPECT_NEAR(solution.bias.front(), 1, 1e-6);  // a last place of the weight
  EXPECT_THAT(solution.dependent, IsEmpty());
  const auto refined = solve_least_squares(world(), rows_of(share), {.extra_precise = true});
  EXPECT_THAT(refined.weight, ElementsAre(2));
  EXPECT_THAT(refined.bias, ElementsAre(1));
}

TEST(LeastSquares, TheScoresAreThoseOfTheResiduals) {
  Table table{VectorXd::LinSpaced(4, 0, 3), VectorXd(4), VectorXd(4)};
  table.y << 1, 2, 3, 10;
  table.weight << 1, 1, 2, 0;
  const TableShare share = table.share();
  const std::vector<double> weight{1}, bias{2};
  const Scores scores = evaluate(world(), share, weight, bias);  // each is told 1 too much
  EXPECT_EQ(scores.loss, 1);
  EXPECT_EQ(scores.targets.at(0).mae, 1);
  EXPECT_NEAR(scores.targets.at(0).r2, 1 - 4 / 2.75, 1e-15);  // the mean is 2.25
}

TEST(LeastSquares, RefusesWhatOverflows) {
  Table table = random_table(10, 2, 1);
  table.x(3, 1) = 1e200;
  const TableShare share = table.share();
  EXPECT_THAT(refusal([&] { return solve_least_squares(world(), rows_of(share), {}); }), HasSubstr("feature 1"));
}

}  // namespace
}  // namespace ddp::test
