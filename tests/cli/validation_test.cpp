// --valid and what it decides: --patience, --save-best; and --tolerance.
#include <cmath>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Trained {
  std::vector<nlohmann::json> epochs;
  nlohmann::json start, end;
  std::string out;
  float weight = 0;
};

Trained trained(int ranks, std::vector<std::string> arguments) {
  const ScratchFolder scratch;
  arguments.insert(arguments.end(), {"--save", scratch / "m.safetensors", "--metrics", scratch / "m.jsonl"});
  Trained result;
  result.out = train(ranks, arguments).out;
  const auto events = read_metrics(scratch / "m.jsonl");
  for (const auto& event : events) {
    if (event["event"] == "epoch") result.epochs.push_back(event);
  }
  result.start = events.front();
  result.end = events.back();
  result.weight = read_safetensors(scratch / "m.safetensors").at("weight").floats()[0];
  return result;
}

/// y = 2 x to train on, and y = x to validate on: from w = 0 towards 2 the validation loss falls until w = 1, then
/// rises. An epoch takes w to w + 0.1 (2 - w).
class Overfitting : public ::testing::Test {
 protected:
  Overfitting() {
    std::ofstream(scratch_ / "train.csv") << "x,y\n1,2\n-1,-2\n";
    std::ofstream(scratch_ / "valid.csv") << "y,x\n3,3\n";  // columns are found by name
  }
  std::vector<std::string> arguments(std::vector<std::string> more) const {
    more.insert(more.begin(), {"--data", scratch_ / "train.csv", "--valid", scratch_ / "valid.csv", "--no-bias",
                               "--init", "zeros", "--lr", "0.05", "--global-batch", "full"});
    return more;
  }
  ScratchFolder scratch_;
};

double weight_after(std::size_t epochs) {
  return 2 - 2 * std::pow(0.9, static_cast<double>(epochs));
}

TEST_F(Overfitting, IsSeenFromEpochToEpoch) {
  for (const int ranks : {1, 2, 3}) {
    const auto run = trained(ranks, arguments({"--epochs", "12"}));
    ASSERT_EQ(run.epochs.size(), 12U);
    for (std::size_t i = 0; i < 12; ++i) {
      const double w = weight_after(i + 1);
      EXPECT_NEAR(run.epochs[i]["train_loss"], (2 - w) * (2 - w), 1e-5) << i;
      EXPECT_NEAR(run.epochs[i]["valid_loss"], 9 * (w - 1) * (w - 1), 1e-5) << i;  // of the same parameters
      EXPECT_TRUE(run.epochs[i]["valid_r2"].is_null());                            // one row has none
    }
    EXPECT_EQ(run.start["valid_rows"], 1);
    EXPECT_NEAR(run.weight, weight_after(12), 1e-5);
    EXPECT_EQ(run.end["best_epoch"], 6);  // w = 2 - 2 · 0.9^7 = 1.043; the epoch before has 0.937
    EXPECT_THAT(run.out, HasSubstr("validation loss "));
  }
}

TEST_F(Overfitting, EndsWithPatience) {
  const auto run = trained(2, arguments({"--epochs", "100", "--patience", "3"}));
  EXPECT_EQ(run.end["epochs"], 10);  // 7 that were better, and 3 that were not
  EXPECT_EQ(run.epochs.size(), 10U);
  EXPECT_NEAR(run.weight, weight_after(10), 1e-5);
}

TEST_F(Overfitting, LeavesTheBestParameters) {
  for (const int ranks : {1, 2, 3}) {
    const auto run = trained(ranks, arguments({"--epochs", "100", "--patience", "3", "--save-best"}));
    EXPECT_NEAR(run.weight, weight_after(7), 1e-5);
    EXPECT_NEAR(run.end["train_loss"], std::pow(2 - weight_after(7), 2), 1e-5);
    EXPECT_NEAR(run.end["valid_scores"]["mse"], 9 * std::pow(weight_after(7) - 1, 2), 1e-5);
  }
}

TEST_F(Overfitting, OfMiniBatchesIsSeenToo) {
  const auto run =
      trained(2, {"--data", scratch_ / "train.csv", "--valid", scratch_ / "valid.csv", "--no-bias", "--init", "zeros",
                  "--lr", "0.05", "--global-batch", "1", "--epochs", "20", "--patience", "1", "--save-best"});
  // Two steps an epoch, each w + 0.1 (2 - w): 0.38, 0.69, 0.94, 1.14.
  EXPECT_EQ(run.end["epochs"], 4);
  EXPECT_NEAR(run.weight, weight_after(6), 1e-5);
}

TEST_F(Overfitting, IsOfNoUseWithoutData) {
  expect_refusal(1, {"--data", scratch_ / "train.csv", "--patience", "2"}, 2,
                 AllOf(HasSubstr("--patience"), HasSubstr("--valid")));
  expect_refusal(1, {"--valid", "0.5"}, 2, AllOf(HasSubstr("--valid"), HasSubstr("needs --data")));
  expect_refusal(1, {"--data", scratch_ / "train.csv", "--valid", "1.5"}, 2, HasSubstr("--valid 1.5"));
  expect_refusal(2, {"--data", scratch_ / "train.csv", "--valid", "0.9"}, 2, HasSubstr("0.9 of 2 rows"));
  std::ofstream(scratch_ / "other.csv") << "y,z\n3,3\n";
  expect_refusal(2, {"--data", scratch_ / "train.csv", "--valid", scratch_ / "other.csv"}, 2,
                 AllOf(HasSubstr("other.csv"), HasSubstr("no column 'x'")));
}

TEST(Fraction, IsTheSameRowsForAnyNumberOfRanks) {
  std::vector<Trained> runs;
  for (const int ranks : {1, 2, 3, 4}) {
    runs.push_back(trained(ranks, {"--data", data_path("datasets/iris.csv"), "--task", "multiclass", "--standardize",
                                   "--valid", "0.2", "--epochs", "5", "--lr", "0.5", "--seed", "3"}));
    const auto &run = runs.back(), &one = runs.front();
    EXPECT_EQ(run.start["rows"], 120);
    EXPECT_EQ(run.start["valid_rows"], 30);
    ASSERT_EQ(run.epochs.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(run.epochs[i]["train_loss"], one.epochs[i]["train_loss"], 1e-5);
      EXPECT_NEAR(run.epochs[i]["valid_loss"], one.epochs[i]["valid_loss"], 1e-5);
      EXPECT_EQ(run.epochs[i]["valid_accuracy"], one.epochs[i]["valid_accuracy"]);
    }
  }
  EXPECT_GT(runs[0].end["valid_scores"]["accuracy"], 0.7);
}

TEST(Fraction, IsNotTrainedOn) {
  const ScratchFolder scratch;
  std::ofstream table(scratch / "t.csv");
  table << "x,y\n";
  for (int row = 0; row < 10; ++row) table << row << "," << row << "\n";
  table.close();
  const auto run = trained(3, {"--data", scratch / "t.csv", "--valid", "0.3", "--lr", "0", "--init", "zeros"});
  // From zeros the losses are means of squares, and those of all rows add up to 285: each row is in one of them.
  EXPECT_EQ(run.start["rows"], 7);
  EXPECT_NEAR(7 * run.end["train_loss"].get<double>() + 3 * run.end["valid_scores"]["mse"].get<double>(), 285, 1e-4);
}

TEST(Tolerance, EndsATrainingThatNoLongerMoves) {
  for (const char* batch : {"full", "4"}) {
    const auto run =
        trained(2, {"--data", data_path("datasets/diabetes.csv"), "--standardize", "--lr", "0.01", "--global-batch",
                    batch, "--epochs", "2000", "--tolerance", "0.01", "--evaluate-train"});
    const auto& epochs = run.epochs;
    ASSERT_GT(epochs.size(), 2U);
    EXPECT_LT(epochs.size(), 500U);
    const auto change = [&](std::size_t i) {
      const double before = epochs[i - 1]["train_loss"], after = epochs[i]["train_loss"];
      return std::abs(before - after) / before;
    };
    // A step over all rows finds out one epoch later.
    const std::size_t last = epochs.size() - (batch == std::string("full") ? 2 : 1);
    EXPECT_LE(change(last), 0.01);
    for (std::size_t i = 1; i < last; ++i) EXPECT_GT(change(i), 0.01) << i;
  }
}

}  // namespace
}  // namespace ddp::test
