// --deterministic: the same bits from any number of ranks that is a power of 2, and the training that it is without.
#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::HasSubstr;

nlohmann::json trained(int ranks, std::vector<std::string> options) {
  const ScratchFolder scratch;
  options.insert(options.end(), {"--metrics", scratch / "m.jsonl"});
  train(ranks, options);
  return read_metrics(scratch / "m.jsonl").back();
}

void expect_same_bits(const std::vector<int>& numbers_of_ranks, const std::vector<std::string>& options) {
  const auto expected = trained(1, options);
  std::vector<std::string> deterministic = options;
  deterministic.emplace_back("--deterministic");
  std::string hash;
  for (const int ranks : numbers_of_ranks) {
    const auto end = trained(ranks, deterministic);
    if (hash.empty()) hash = end["parameters_hash"];
    EXPECT_EQ(end["parameters_hash"], hash) << ranks << " ranks, " << ::testing::PrintToString(options);
    EXPECT_NEAR(static_cast<double>(end["train_loss"]) / static_cast<double>(expected["train_loss"]), 1, 1e-4)
        << ::testing::PrintToString(options);
  }
}

std::vector<std::string> on_digits(std::vector<std::string> rest) {
  rest.insert(rest.begin(), {"--data", data_path("datasets/digits.csv"), "--task", "multiclass", "--standardize",
                             "--evaluate-train"});
  return rest;
}

TEST(Deterministic, BitsDoNotDependOnTheNumberOfRanks) {
  const std::vector<int> ranks{1, 2, 4, 8};
  expect_same_bits(ranks, on_digits({"--global-batch", "100", "--lr", "0.1", "--momentum", "0.9", "--epochs", "3"}));
  expect_same_bits(ranks, on_digits({"--global-batch", "full", "--lr", "0.5", "--epochs", "5"}));
  // Batches of fewer rows than there are shards, several of them for a step, of unequal weights.
  expect_same_bits(ranks, on_digits({"--global-batch", "37", "--accumulate", "3", "--clip-grad-norm", "0.5", "--lr",
                                     "0.1", "--class-weights", "balanced", "--epochs", "2"}));
}

TEST(Deterministic, HiddenLayersAndSingleOutputsToo) {
  const std::vector<int> ranks{1, 2, 4};
  expect_same_bits(ranks, on_digits({"--hidden", "20,9", "--activation", "gelu", "--optimizer", "adam",
                                     "--global-batch", "64", "--epochs", "2"}));
  expect_same_bits(ranks, {"--data", data_path("datasets/breast_cancer.csv"), "--task", "binary", "--standardize",
                           "--lr", "0.1", "--epochs", "4", "--global-batch", "90", "--valid", "0.3", "--save-best"});
  expect_same_bits(ranks, {"--data", data_path("datasets/diabetes.csv"), "--target", "target", "--standardize",
                           "--sweep", "lr=0.01,0.02", "--epochs", "4", "--global-batch", "90"});
}

/// Also on the stand-in GPU, where steps take long.
TEST(Deterministic, OfFewRows) {
  expect_same_bits({1, 2, 4}, {"--data", data_path("datasets/iris.csv"), "--task", "multiclass", "--hidden", "5",
                               "--lr", "0.1", "--global-batch", "75"});
}

TEST(Deterministic, Refusals) {
  expect_refusal(3, on_digits({"--deterministic"}), 2, HasSubstr("1, 2, 4, 8, 16, 32 or 64 ranks, not from 3"));
  expect_refusal(1, on_digits({"--deterministic", "--compress", "fp16"}), 2, HasSubstr("--compress is not for"));
  expect_refusal(1, on_digits({"--deterministic", "--average", "ranks"}), 2,
                 HasSubstr("depends on the number of ranks"));
  expect_refusal(1, on_digits({"--deterministic", "--optimizer", "lbfgs"}), 2, HasSubstr("--deterministic is not for"));
}

}  // namespace
}  // namespace ddp::test
