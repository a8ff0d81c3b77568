// PyTorch's CPU random numbers: the whole sequence after torch.manual_seed(s), in order, against a recording.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/safetensors.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include "support/torch_run.hpp"

namespace ddp {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::Eq;

/// Within 4 units in the last place, or 1e-6: PyTorch's vectorised log, sin and cos differ from libm's in the last
/// bits, and near a zero of sin or cos such a difference is many units of the result.
void expect_near_normal(const std::vector<float>& actual, const std::vector<float>& recorded) {
  ASSERT_EQ(actual.size(), recorded.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const float magnitude = std::abs(recorded[i]);
    const float unit = std::nextafter(magnitude, std::numeric_limits<float>::max()) - magnitude;
    EXPECT_NEAR(actual[i], recorded[i], std::max(4.0F * unit, 1e-6F)) << "value " << i;
  }
}

class RecordedSeed : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  [[nodiscard]] const StoredTensor& recorded(const std::string& draw) const {
    return recording_.at("seed" + std::to_string(GetParam()) + "." + draw);
  }

 private:
  StoredFile recording_ = read_safetensors(test::torch_reference_folder() + "/torch_rng.safetensors");
};

TEST_P(RecordedSeed, DrawsWhatPyTorchDraws) {
  TorchGenerator generator(GetParam());

  std::vector<float> weight(100), bias(10);
  init_linear(generator, 10, weight, bias);
  EXPECT_THAT(weight, ElementsAreArray(recorded("linear10x10.weight").floats()));
  EXPECT_THAT(bias, ElementsAreArray(recorded("linear10x10.bias").floats()));

  for (const auto& [draw, size] : {std::pair{"randn20x10", 200}, {"randn3x5", 15}, {"randn4x5", 20}}) {
    SCOPED_TRACE(draw);
    std::vector<float> normal(static_cast<std::size_t>(size));
    generator.randn(normal);
    expect_near_normal(normal, recorded(std::string("then.") + draw).floats());
  }

  std::vector<float> uniform(7);
  generator.rand(uniform);
  EXPECT_THAT(uniform, ElementsAreArray(recorded("then.rand7").floats()));

  std::vector<std::int64_t> integers(9);
  generator.randint(integers, 1000);
  EXPECT_THAT(integers, ElementsAreArray(test::integers(recorded("then.randint1000x9"))));

  EXPECT_THAT(generator.randperm(31), ElementsAreArray(test::integers(recorded("then.randperm31"))));
}

INSTANTIATE_TEST_SUITE_P(TorchGenerator, RecordedSeed, ::testing::Values(0U, 1U, 42U, 2147483647U));

std::vector<float> normals(TorchGenerator& generator, std::size_t count) {
  std::vector<float> values(count);
  generator.randn(values);
  return values;
}

TEST(TorchGenerator, OnlyFewNormalsKeepTheSecondOfAPair) {
  TorchGenerator pieces(3), whole(3);
  auto fifteen = normals(pieces, 15);  // 8 pairs: one value is kept
  const auto sixteen = normals(pieces, 16);
  const auto last = normals(pieces, 1);

  const auto expected_fifteen = normals(whole, 15);
  EXPECT_EQ(fifteen, expected_fifteen);
  TorchGenerator drawn(3);
  const auto pairs = [&] {
    std::vector<float> first = normals(drawn, 8), second = normals(drawn, 8);
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }();
  fifteen.push_back(last[0]);
  EXPECT_EQ(fifteen, pairs) << "16 values at once neither use nor drop the one that was kept";
  EXPECT_EQ(sixteen, normals(drawn, 16)) << "and take 16 draws, from where the 8 pairs ended";
}

TEST(TorchGenerator, UsesTheLow32BitsOfTheSeed) {
  TorchGenerator low(42), high(42 + (std::uint64_t{7} << 32U));
  EXPECT_EQ(low.randperm(100), high.randperm(100));
}

TEST(TorchGenerator, EdgesOfSizesAndBounds) {
  TorchGenerator generator(0);
  EXPECT_TRUE(generator.randperm(0).empty());
  EXPECT_THAT(generator.randperm(1), ::testing::ElementsAre(0));
  std::vector<std::int64_t> values(5, -1);
  generator.randint(values, 1);
  EXPECT_THAT(values, Each(Eq(0)));
  generator.randint(values, std::numeric_limits<std::uint32_t>::max());
  EXPECT_THAT(values, Each(::testing::Ge(0)));
  EXPECT_THROW(generator.randint(values, 0), Error);
  EXPECT_THROW(generator.randint(values, std::int64_t{1} << 32), Error);
  EXPECT_THROW((void)generator.randperm(-1), Error);
}

}  // namespace
}  // namespace ddp
