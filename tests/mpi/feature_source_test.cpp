// Features that stay in their files: wherever they are read from, and whenever, they are those that memory would hold.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <future>
#include <limits>
#include <numeric>

#include <linear_ddp/base/available_memory.hpp>
#include <linear_ddp/data/batch_source.hpp>
#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/data/feature_source.hpp>
#include <linear_ddp/data/split.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/device/device.hpp>
#include "support/message_of.hpp"
#include "support/npy_file.hpp"
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t rows = 1001, columns = 70;

/// [rows, columns]: value (r, c) is r + c / 128, which float holds.
std::string values_text(bool by_column, bool as_float, double bad = 0) {
  std::vector<float> floats;
  std::vector<double> doubles;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const std::int64_t row = by_column ? i % rows : i / columns, column = by_column ? i / rows : i % columns;
    const double value = static_cast<double>(row) + static_cast<double>(column) / 128;
    doubles.push_back(bad != 0 && row == 700 && column == 3 ? bad : value);
    floats.push_back(static_cast<float>(doubles.back()));
  }
  return as_float ? bytes_of(floats) : bytes_of(doubles);
}

std::string npy_text(bool by_column, bool as_float, double bad = 0) {
  return npy(fmt::format("{{'descr': '<{}', 'fortran_order': {}, 'shape': ({}, {}), }}\n", as_float ? "f4" : "f8",
                         by_column ? "True" : "False", rows, columns),
             values_text(by_column, as_float, bad));
}

ColumnSelection left_in_files(ColumnSelection selection = {}) {
  selection.leaves_features = true;
  return selection;
}

TableShare read_left(const std::string& path, const ColumnSelection& selection = {}) {
  return read_table(world(), path, {}, left_in_files(selection));
}

/// x of all rows in an order of their own, a few at a time.
std::vector<float> scattered(const Dataset& data) {
  std::vector<float> x(static_cast<std::size_t>(data.rows * data.in));
  const auto order = TorchGenerator(3).randperm(data.rows);
  std::vector<float> some(static_cast<std::size_t>(13 * data.in));
  for (std::size_t begin = 0; begin < order.size(); begin += 13) {
    const auto batch = std::span(order).subspan(begin, std::min<std::size_t>(13, order.size() - begin));
    data.copy_x(batch, some.data());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      std::copy_n(some.begin() + static_cast<std::ptrdiff_t>(i) * data.in, data.in, x.begin() + batch[i] * data.in);
    }
  }
  return x;
}

/// In memory as it was read, in memory from the file, and in the file.
void expect_same(const TableShare& in_memory, const TableShare& left) {
  ASSERT_TRUE(left.source != nullptr);
  EXPECT_TRUE(left.features.empty());
  const Dataset expected = gather_dataset(world(), in_memory);
  const Dataset gathered = gather_dataset(world(), left, Residence::memory);
  const Dataset streamed = gather_dataset(world(), left, Residence::files);
  EXPECT_TRUE(streamed.x.empty());
  ASSERT_EQ(gathered.rows, expected.rows);
  ASSERT_EQ(streamed.in, expected.in);
  const std::vector<float> x(expected.x.data(), expected.x.data() + expected.x.size());
  EXPECT_EQ(std::vector<float>(gathered.x.data(), gathered.x.data() + gathered.x.size()), x);
  EXPECT_EQ(scattered(streamed), x);
  for (std::size_t row = 0; row < expected.y.size(); ++row) ASSERT_EQ(streamed.y[row], expected.y[row]);
}

TEST(FeatureSource, GivesWhatMemoryWouldHold) {
  for (const bool by_column : {false, true}) {
    for (const bool as_float : {false, true}) {
      const SharedFile file("x.npy", npy_text(by_column, as_float));
      for (const ColumnSelection& selection :
           {ColumnSelection{}, ColumnSelection{.targets = {"#0"}}, ColumnSelection{{"#5", "#6", "#2", "#69"}, {"#7"}},
            ColumnSelection{.excluded = {"#68"}, .weights = "#30"}}) {
        SCOPED_TRACE(fmt::format("by column {}, float {}", by_column, as_float));
        expect_same(read_table(world(), file.path(), {}, selection), read_left(file.path(), selection));
      }
    }
  }
}

TEST(FeatureSource, GivesTheRightNumbers) {
  const SharedFile file("x.npy", npy_text(false, true));
  const Dataset data = gather_dataset(world(), read_left(file.path()), Residence::files);
  std::vector<float> x(3 * (columns - 1));
  data.copy_x(std::vector<std::int64_t>{1000, 0, 7}, x.data());
  EXPECT_EQ(x[0], 1000.F);
  EXPECT_EQ(x[68], 1000.F + 68.F / 128);
  EXPECT_EQ(x[69], 0.F);
  EXPECT_EQ(x[2 * 69 + 1], 7.F + 1.F / 128);
  EXPECT_EQ(data.y[7], 7.F + 69.F / 128);
}

TEST(FeatureSource, IsThereForArraysByKeys) {
  for (const char* name : {"P32-f16.safetensors", "P32-bf16.safetensors", "P33-reordered.safetensors"}) {
    SCOPED_TRACE(name);
    expect_same(read_case(name), read_left(case_path(name)));
  }
  const TableShare compressed = read_left(case_path("P26-deflate.npz"));  // which no row can be taken from alone
  EXPECT_EQ(compressed.source, nullptr);
  EXPECT_EQ(whole(compressed).features, whole(read_case("P26-deflate.npz")).features);
}

TEST(FeatureSource, IsStandardisedAndPartedAsMemoryWouldBe) {
  const SharedFile file("x.npy", npy_text(false, false));
  TableShare in_memory = read_table(world(), file.path(), {}, {}), left = read_left(file.path());
  const auto marked = held_back_rows(rows, 0.3, 5);
  TableShare other_in_memory = take_rows(in_memory, marked), other_left = take_rows(left, marked);
  const Standardizer expected(world(), in_memory), standardizer(world(), left);
  EXPECT_EQ(standardizer.mean(), expected.mean());
  EXPECT_EQ(standardizer.scale(), expected.scale());
  for (TableShare* share : {&in_memory, &left, &other_in_memory, &other_left}) standardizer.apply(*share);
  expect_same(in_memory, left);
  expect_same(other_in_memory, other_left);
}

TEST(FeatureSource, IsOfAllFilesOfAPattern) {
  const SharedFile first("part-1.npy", npy_text(false, true));
  const std::string folder = std::filesystem::path(first.path()).parent_path();
  if (world().rank() == 0) {
    std::ofstream(folder + "/part-2.npy", std::ios::binary) << npy_text(true, false);
    std::ofstream(folder + "/part-3.npy", std::ios::binary) << npy_text(false, false);
  }
  MPI_Barrier(world().comm());
  const std::string pattern = folder + "/part-*.npy";
  expect_same(read_table(world(), pattern, {}, {}), read_left(pattern));
}

TEST(FeatureSource, NamesWhatCannotBeUsed) {
  const SharedFile file("nan.npy", npy_text(false, true, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_THAT(refusal([&] { return gather_dataset(world(), read_left(file.path()), Residence::memory); }),
              AllOf(HasSubstr("nan.npy, row 700, column '#3' (both from 0): nan is not a finite number")));
  const SharedFile large("large.npy", npy_text(false, false, 1e39));
  EXPECT_THAT(refusal([&] { return gather_dataset(world(), read_left(large.path()), Residence::memory); }),
              AllOf(HasSubstr("large.npy, row 700, column '#3': 1e+39 is beyond the range of float")));
  const Dataset data = gather_dataset(world(), read_left(large.path()), Residence::files);
  std::vector<float> x(columns);
  EXPECT_THAT(message_of<UseError>([&] { data.copy_x(std::vector<std::int64_t>{700}, x.data()); }),
              HasSubstr("large.npy, row 700, column '#3': 1e+39 is beyond the range of float"));
  EXPECT_THAT(refusal([&] { return gather_dataset(world(), read_case("BASE.csv"), Residence::files); }),
              HasSubstr("rows of this table cannot be read one by one"));
  EXPECT_EQ(read_left(file.path(), {.missing = Missing::mean}).source, nullptr) << "gaps are filled in memory";
}

/// An epoch's last step starts the reading of the next epoch, and then the same rows are evaluated.
TEST(FeatureSource, IsReadByTwoThreadsAtOnce) {
  for (const bool as_float : {true, false}) {
    const SharedFile file("x.npy", npy_text(false, as_float));
    TableShare share = read_left(file.path());
    const Standardizer standardizer(world(), share);
    if (!as_float) standardizer.apply(share);
    const Dataset streamed = gather_dataset(world(), share, Residence::files);
    const std::vector<float> expected = scattered(streamed);
    std::vector<std::future<int>> wrong;
    for (int thread = 0; thread < 2; ++thread) {
      wrong.push_back(std::async(std::launch::async, [&] {
        int times = 0;
        for (int repeat = 0; repeat < 20; ++repeat) times += scattered(streamed) != expected ? 1 : 0;
        return times;
      }));
    }
    for (auto& times : wrong) EXPECT_EQ(times.get(), 0) << "of 20 times, float " << as_float;
  }
}

/// Of any size, without a file.
class Zeros final : public FeatureSource {
 public:
  explicit Zeros(std::size_t width) : FeatureSource(std::vector<std::string>(width, "zero"), false) {}
  using FeatureSource::read;
  void read(std::span<const std::int64_t> some, double* x) override {
    std::fill_n(x, std::ssize(some) * columns(), 0.0);
  }
  void will_need(std::span<const std::int64_t>) const override {}
  std::string name_row(std::int64_t row) const override { return fmt::format("row {}", row); }
};

TEST(FeatureSource, StaysInItsFilesWhenMemoryIsShort) {
  const auto gathered = [](std::size_t width) {
    TableShare share;
    share.path = "zeros";
    share.source = std::make_shared<Zeros>(width);
    share.feature_names = share.source->names();
    share.target_names = {"y"};
    share.total_rows = 1'000'000;
    share.first_row = share_begin(share.total_rows, world().rank(), world().size());
    share.rows = share_begin(share.total_rows, world().rank() + 1, world().size()) - share.first_row;
    share.targets.assign(static_cast<std::size_t>(share.rows), 1.0);
    return gather_dataset(world(), share);
  };
  const Dataset small = gathered(2);
  EXPECT_EQ(small.source, nullptr);
  EXPECT_EQ(small.x.size(), 2'000'000U);
  EXPECT_THAT(small.notices, ::testing::IsEmpty());
  const Dataset large = gathered(static_cast<std::size_t>(available_memory() / 4'000'000 * 3 / 4));
  EXPECT_NE(large.source, nullptr);
  EXPECT_TRUE(large.x.empty());
  EXPECT_THAT(large.notices, ::testing::ElementsAre(AllOf(HasSubstr("zeros: "), HasSubstr("read from the file"))));
}

std::int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

TEST(FeatureSource, NeedsNoMemoryForTheTable) {
  constexpr std::int64_t width = 1024, height = 100'000;  // 400 MB of zeros, which the file system need not store
  const SharedFile file(
      "x.npy",
      npy(fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}\n", height, width), ""));
  if (world().rank() == 0) {
    std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) + 4 * width * height);
  }
  MPI_Barrier(world().comm());
  const std::int64_t before = peak_bytes();
  const Dataset data = gather_dataset(world(), read_left(file.path()), Residence::files);
  const auto device = make_cpu_device();
  const SamplerOptions sampler{.rank = world().rank(), .ranks = world().size(), .global_batch = 256};
  const auto batches = make_dataset_batches(*device, data, {.sampler = sampler});
  std::int64_t batch_rows = 0;
  for (std::int64_t batch = 0; batch < batches->batches_per_epoch(); ++batch) {
    const Step step = batches->load(0, batch);
    if (batch + 1 < batches->batches_per_epoch()) batches->read_ahead(0, batch + 1);
    ASSERT_EQ(std::accumulate(step.batch.x, step.batch.x + step.batch.rows * data.in, 0.F), 0.F);
    batch_rows += step.batch.rows;
  }
  all_reduce_sum(world(), std::span(&batch_rows, 1));
  EXPECT_EQ(batch_rows, height);
  EXPECT_LT(peak_bytes() - before, 40 << 20);
}

}  // namespace
}  // namespace ddp::test
