// LIBSVM features that stay sparse: the numbers that their lines say, whichever rank reads which rows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <numeric>
#include <utility>

#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/data/feature_source.hpp>
#include <linear_ddp/data/split.hpp>
#include "support/message_of.hpp"
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t rows = 500, columns = 40;

/// What the table says of a row and a column: a few of a row are not 0, and some rows have nothing.
double value_at(std::int64_t row, std::int64_t column) {
  if (row % 7 == 3 || (row + column) % 11 != 0) return 0;
  return static_cast<double>(row) / 8 - static_cast<double>(column);
}

/// Lines [begin, end), of which none has an index above `most`.
std::string lines(std::int64_t begin, std::int64_t end, std::int64_t most = columns) {
  std::string text;
  for (std::int64_t row = begin; row < end; ++row) {
    text += fmt::format("{}", row % 3);
    for (std::int64_t column = 0; column < most; ++column) {
      if (value_at(row, column) != 0) text += fmt::format(" {}:{}", column + 1, value_at(row, column));
    }
    text += '\n';
  }
  return text;
}

TableShare read_sparse(const std::string& path, ColumnSelection selection = {}) {
  selection.leaves_features = true;
  return read_table(world(), path, {}, selection);
}

/// Every row, in an order that goes back and forth.
void expect_the_values(const Dataset& data, const std::function<double(std::int64_t, std::int64_t)>& wanted) {
  ASSERT_TRUE(data.source != nullptr);
  EXPECT_TRUE(data.source->in_memory());
  EXPECT_TRUE(data.x.empty());
  std::vector<std::int64_t> order(static_cast<std::size_t>(data.rows));
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());
  std::rotate(order.begin(), order.begin() + std::ssize(order) / 3, order.end());
  std::vector<float> x(order.size() * static_cast<std::size_t>(data.in), -1.F);
  data.copy_x(order, x.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t row = order[i / static_cast<std::size_t>(data.in)],
                       column = static_cast<std::int64_t>(i) % data.in;
    ASSERT_EQ(x[i], static_cast<float>(wanted(row, column))) << row << ", " << column;
  }
}

TEST(SparseFeatures, AreThoseOfTheLines) {
  const SharedFile file("table.svm", lines(0, rows));
  const Dataset data = gather_dataset(world(), read_sparse(file.path()));
  ASSERT_EQ(data.rows, rows);
  ASSERT_EQ(data.in, columns);
  expect_the_values(data, value_at);
  for (std::int64_t row = 0; row < rows; ++row)
    EXPECT_EQ(data.y[static_cast<std::size_t>(row)], static_cast<float>(row % 3));
}

/// The first file's highest index is not the table's, and the second one has less lines than there may be ranks.
TEST(SparseFeatures, OfSeveralFilesFollowEachOther) {
  const SharedFile first("part-1.svm", lines(0, 1, 12));
  const std::string folder = first.path().substr(0, first.path().rfind('/'));
  if (world().rank() == 0) {
    std::ofstream(folder + "/part-2.svm") << lines(1, 200);
    std::ofstream(folder + "/part-10.svm") << lines(200, rows, 30);
  }
  MPI_Barrier(world().comm());
  const Dataset data = gather_dataset(world(), read_sparse(folder + "/part-*.svm"));
  ASSERT_EQ(data.rows, rows);
  ASSERT_EQ(data.in, columns);
  expect_the_values(data, [](std::int64_t row, std::int64_t column) {
    const std::int64_t most = row == 0 ? 12 : row < 200 ? columns : 30;
    return column < most ? value_at(row, column) : 0;
  });
}

TEST(SparseFeatures, AreStandardisedAndParted) {
  const SharedFile file("table.svm", lines(0, rows));
  TableShare share = read_sparse(file.path());
  const auto held_back = held_back_rows(rows, 0.25, 1);
  TableShare valid = take_rows(share, held_back);
  std::vector<std::int64_t> of_training, of_valid;
  for (std::int64_t row = 0; row < rows; ++row)
    (held_back[static_cast<std::size_t>(row)] ? of_valid : of_training).push_back(row);
  const Standardizer standardizer(world(), share);
  standardizer.apply(share);

  const auto own_sum = [&](std::int64_t column, auto&& term) {
    double sum = 0;
    for (const std::int64_t row : of_training) sum += term(value_at(row, column));
    return sum / static_cast<double>(of_training.size());
  };
  for (std::int64_t column = 0; column < columns; ++column) {
    const double mean = own_sum(column, [](double value) { return value; });
    const double variance = own_sum(column, [&](double value) { return (value - mean) * (value - mean); });
    EXPECT_NEAR(standardizer.mean()[static_cast<std::size_t>(column)], mean, 1e-13 * std::abs(mean) + 1e-15);
    EXPECT_NEAR(standardizer.scale()[static_cast<std::size_t>(column)], std::sqrt(variance),
                1e-13 * std::sqrt(variance));
  }
  expect_the_values(gather_dataset(world(), valid), [&](std::int64_t row, std::int64_t column) {
    return value_at(of_valid[static_cast<std::size_t>(row)], column);
  });
  expect_the_values(gather_dataset(world(), share), [&](std::int64_t row, std::int64_t column) {
    const auto at = static_cast<std::size_t>(column);
    return (value_at(of_training[static_cast<std::size_t>(row)], column) - standardizer.mean()[at]) /
           standardizer.scale()[at];
  });
}

TEST(SparseFeatures, AreKeptOnlyWhereThatIsSmaller) {
  // 12 bytes a value and 8 a row, or 4 a feature of a row.
  for (const auto& [line, is_sparse] :
       {std::pair{"1 1:1 20:1\n", true}, {"1 1:1 8:1\n", false}, {"1 1:1 9:1\n", true}}) {
    std::string text;
    for (int row = 0; row < 20; ++row) text += line;
    const SharedFile file("table.svm", text);
    EXPECT_EQ(read_sparse(file.path()).source != nullptr, is_sparse) << line;
    EXPECT_EQ(read_table(world(), file.path(), {}, {}).source, nullptr) << "not asked for";
  }
}

/// 3 GB when no value is left out.
TEST(SparseFeatures, NeedNoMemoryForWhatIsNotGiven) {
  std::string text;
  for (int row = 0; row < 20'000; ++row) text += fmt::format("{} {}:1 40000:2\n", row % 2, row + 1);
  const SharedFile file("table.svm", text);
  const TableShare share = read_sparse(file.path(), {.missing = Missing::mean});
  const Dataset data = gather_dataset(world(), share);
  std::vector<float> x(2 * 40'000);
  data.copy_x(std::vector<std::int64_t>{19'999, 0}, x.data());
  EXPECT_EQ(x[19'999], 1.F);
  EXPECT_EQ(x[39'999], 2.F);
  EXPECT_EQ(x[40'000], 1.F);
  EXPECT_EQ(std::accumulate(x.begin(), x.end(), 0.F), 6.F);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 1'000'000) << "KiB";
}

TEST(SparseFeatures, RefuseWhatFloatDoesNotHold) {
  const SharedFile file("table.svm", lines(0, 20) + "1 7:1e300\n");
  const Dataset data = gather_dataset(world(), read_sparse(file.path()));
  std::vector<float> x(static_cast<std::size_t>(data.in));
  EXPECT_THAT(message_of<UseError>([&] { data.copy_x(std::vector<std::int64_t>{20}, x.data()); }),
              AllOf(HasSubstr("table.svm, data row 21, column '7': 1e+300"), HasSubstr("float")));
  EXPECT_THAT(refusal([&] { return gather_dataset(world(), read_sparse(file.path()), Residence::files); }),
              HasSubstr("not streamed"));
}

}  // namespace
}  // namespace ddp::test
