// Rows held back from a table, on every number of ranks, and the classes of another table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/data/split.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include "support/message_of.hpp"
#include "support/mpi_test_world.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

/// This rank's share of a table of files with so many rows each: row r is (r, 100 + r), its target 1000 + r.
TableShare share_of(const std::vector<std::int64_t>& files) {
  TableShare share;
  share.feature_names = {"a", "b"};
  share.target_names = {"y"};
  for (const std::int64_t rows : files) {
    const std::int64_t begin = share_begin(rows, world().rank(), world().size());
    const std::int64_t end = share_begin(rows, world().rank() + 1, world().size());
    share.pieces.push_back({share.total_rows + begin, end - begin});
    for (std::int64_t row = share.total_rows + begin; row < share.total_rows + end; ++row) {
      const auto value = static_cast<double>(row);
      share.features.insert(share.features.end(), {value, 100 + value});
      share.targets.push_back(1000 + value);
      share.weights.push_back(1 + value);
    }
    share.rows += end - begin;
    share.total_rows += rows;
  }
  share.first_row = share.pieces.front().first;
  if (files.size() == 1) share.pieces.clear();
  return share;
}

void expect_rows(const TableShare& share, const std::vector<std::int64_t>& rows) {
  const Dataset data = gather_dataset(world(), share);
  ASSERT_EQ(data.rows, static_cast<std::int64_t>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto value = static_cast<float>(rows[i]);
    EXPECT_EQ(data.x[2 * i], value);
    EXPECT_EQ(data.x[2 * i + 1], 100 + value);
    EXPECT_EQ(data.y[i], 1000 + value);
    EXPECT_EQ(data.weights[i], 1 + value);
  }
}

TEST(TakeRows, PartsATableWhereverItsRowsAre) {
  for (const auto& files : {std::vector<std::int64_t>{11}, {6, 5}, {1, 9, 1}, {11, 0}}) {
    for (const std::vector<std::int64_t>& marked :
         {std::vector<std::int64_t>{0, 3, 4, 10}, {5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
      std::vector<bool> mask(11);
      std::vector<std::int64_t> others;
      for (const std::int64_t row : marked) mask[static_cast<std::size_t>(row)] = true;
      for (std::int64_t row = 0; row < 11; ++row) {
        if (!mask[static_cast<std::size_t>(row)]) others.push_back(row);
      }
      TableShare share = share_of(files);
      const TableShare taken = take_rows(share, mask);
      expect_rows(taken, marked);
      expect_rows(share, others);
    }
  }
}

TEST(HeldBackRows, AreTheLastOfThePermutation) {
  const auto order = TorchGenerator(7).randperm(10);  // itself compared with PyTorch's
  const auto mask = held_back_rows(10, 0.25, 7);      // 2.5 rows are 3
  EXPECT_EQ(std::count(mask.begin(), mask.end(), true), 3);
  for (std::size_t i = 7; i < 10; ++i) EXPECT_TRUE(mask[static_cast<std::size_t>(order[i])]);
  EXPECT_THAT(message_of<UseError>([] { static_cast<void>(held_back_rows(3, 0.9, 0)); }),
              HasSubstr("0.9 of 3 rows leaves none"));
}

TEST(UseClasses, FindsLabelsByTextOrByValue) {
  TableShare share;
  share.path = "t.csv";
  share.target_names = {"kind"};
  share.labels = {"01", "2.0", "x"};
  share.targets = {0, 2, 1};
  use_classes(share, {"x", "1", "2"});
  EXPECT_THAT(share.targets, ElementsAreArray({1.0, 0.0, 2.0}));
  share.labels = {"3"};
  EXPECT_THAT(message_of<UseError>([&] {
                use_classes(share, {"1", "2"});
              }),
              AllOf(HasSubstr("t.csv"), HasSubstr("'kind'"), HasSubstr("'3'"), HasSubstr("'1', '2'")));
}

}  // namespace
}  // namespace ddp::test
