// --zero: optimizer state in shards, and the same training.
#include <cmath>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::HasSubstr;

struct Trained {
  double loss;
  std::vector<float> parameters;
};

Trained trained(int ranks, std::vector<std::string> options) {
  const ScratchFolder scratch;
  options.insert(options.end(), {"--metrics", scratch / "m.jsonl", "--save", scratch / "m.safetensors"});
  train(ranks, options);
  Trained result{read_metrics(scratch / "m.jsonl").back()["objective"], {}};
  for (const StoredTensor& tensor : read_safetensors(scratch / "m.safetensors").tensors) {
    const auto values = tensor.floats();
    result.parameters.insert(result.parameters.end(), values.begin(), values.end());
  }
  return result;
}

/// The sums over ranks are taken in another order, and rounded otherwise.
void expect_the_same(const std::vector<int>& numbers_of_ranks, const std::vector<std::string>& options) {
  for (const int ranks : numbers_of_ranks) {
    const Trained expected = trained(ranks, options);
    std::vector<std::string> sharded = options;
    sharded.emplace_back("--zero");
    const Trained found = trained(ranks, sharded);
    const std::string shown = std::to_string(ranks) + " ranks, " + ::testing::PrintToString(options);
    EXPECT_NEAR(found.loss / expected.loss, 1, 1e-6) << shown;
    ASSERT_EQ(found.parameters.size(), expected.parameters.size());
    double apart = 0;
    for (std::size_t i = 0; i < found.parameters.size(); ++i) {
      apart = std::max(apart, static_cast<double>(std::abs(found.parameters[i] - expected.parameters[i])));
    }
    EXPECT_LE(apart, 1e-5) << shown;
  }
}

std::vector<std::string> on_iris(std::vector<std::string> rest) {
  rest.insert(rest.begin(), {"--data", data_path("datasets/iris.csv"), "--task", "multiclass", "--evaluate-train"});
  return rest;
}

TEST(Zero, TrainsAsWithout) {
  const std::vector<int> ranks{1, 2, 3, 4};
  expect_the_same(
      ranks, on_iris({"--lr", "0.05", "--momentum", "0.9", "--l2", "0.1", "--epochs", "3", "--global-batch", "30"}));
  expect_the_same(ranks, on_iris({"--hidden",
                                  "11,6",
                                  "--activation",
                                  "tanh",
                                  "--optimizer",
                                  "adamw",
                                  "--amsgrad",
                                  "--lr",
                                  "0.01",
                                  "--clip-grad-norm",
                                  "0.3",
                                  "--accumulate",
                                  "2",
                                  "--l2",
                                  "0.02",
                                  "--schedule",
                                  "cosine",
                                  "--epochs",
                                  "3",
                                  "--global-batch",
                                  "20"}));
}

/// Two parameters for four ranks.
TEST(Zero, ShardsMayBeEmpty) {
  expect_the_same({4}, {"--in", "1", "--out", "1", "--steps", "5", "--lr", "0.1", "--clip-grad-norm", "0.5"});
}

TEST(Zero, Refusals) {
  expect_refusal(1, on_iris({"--zero", "--compress", "fp16"}), 2, HasSubstr("--compress is not for --zero"));
  expect_refusal(1, on_iris({"--zero", "--sweep", "lr=1,2"}), 2, HasSubstr("--sweep has an optimizer for each head"));
  expect_refusal(1, on_iris({"--zero", "--optimizer", "lbfgs"}), 2, HasSubstr("--zero is not for --optimizer lbfgs"));
}

}  // namespace
}  // namespace ddp::test
