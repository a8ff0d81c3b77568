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
    const auto solution = solve_least_squares(
        world(), rows_of(share), {.bias = right["bias"], .extra_precise = true, .standard_errors = true});
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

}  // namespace
}  // namespace ddp::test
