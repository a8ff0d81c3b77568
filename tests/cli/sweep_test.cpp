// --sweep: each head against the program's training of it alone, which other tests hold against PyTorch's.
#include <fmt/format.h>

#include <cmath>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<nlohmann::json> heads_in(const std::string& path) {
  auto events = read_metrics(path);
  std::erase_if(events, [](const auto& event) { return event["event"] != "head"; });
  return events;
}

/// Sums run in another order in the wide product; errors of that grow with the steps.
void expect_near(const nlohmann::json& value, const nlohmann::json& expected, double tolerance = 2e-5) {
  EXPECT_NEAR(value.get<double>() / expected.get<double>(), 1, tolerance);
}

void expect_near(const std::string& model, const std::string& expected) {
  for (const char* name : {"weight", "bias"}) {
    const auto values = read_safetensors(model).at(name).floats(), right = read_safetensors(expected).at(name).floats();
    ASSERT_EQ(values.size(), right.size());
    for (std::size_t i = 0; i < right.size(); ++i) EXPECT_NEAR(values[i], right[i], 2e-5F * (1 + std::abs(right[i])));
  }
}

/// Trains the sweep, and each of its heads alone.
void expect_heads_as_alone(int ranks, const Words& arguments, const std::string& sweep, const Words& names) {
  const ScratchFolder scratch;
  train(ranks, arguments + Words{"--sweep", sweep, "--metrics", scratch / "m.jsonl", "--save", scratch / "best"});
  const auto heads = heads_in(scratch / "m.jsonl");
  const auto end = read_metrics(scratch / "m.jsonl").back();
  for (const auto& head : heads) {
    SCOPED_TRACE(head.dump());
    Words own;
    for (const auto& name : names) own = own + Words{"--" + name, fmt::format("{}", head[name].get<double>())};
    train(ranks, arguments + own + Words{"--metrics", scratch / "alone.jsonl", "--save", scratch / "alone"});
    const auto alone = read_metrics(scratch / "alone.jsonl").back();
    expect_near(head["train_loss"], alone["train_loss"]);
    if (head.contains("valid_loss")) {
      expect_near(head["valid_loss"], alone["valid_scores"]["loss"]);
      EXPECT_EQ(head["best_epoch"], alone["best_epoch"]);
    }
    if (head["rank"] != 1) continue;
    expect_near(end["train_loss"], alone["train_loss"]);
    expect_near(end["objective"], alone["objective"]);
    expect_near(scratch / "best", scratch / "alone");
  }
  const char* by = heads[0].contains("valid_loss") ? "valid_loss" : "train_loss";
  for (std::size_t i = 1; i < heads.size(); ++i) EXPECT_LE(heads[i - 1][by], heads[i][by]);
}

Words table(const std::string& file, const Words& more) {
  return Words{"--data", data_path("datasets/" + file), "--standardize"} + more;
}

TEST(Sweep, HeadsOfSgdAreAsEachAlone) {
  const Words digits = table("digits.csv", {"--task", "multiclass", "--epochs", "3", "--global-batch", "100",
                                            "--momentum", "0.9", "--schedule", "cosine", "--valid", "0.2"});
  expect_heads_as_alone(3, digits, "lr=0.01,0.1,weight-decay=0,0.01,l2=0.001", {"lr", "weight-decay", "l2"});
}

TEST(Sweep, HeadsOfAdamAreAsEachAlone) {
  const Words diabetes = table("diabetes.csv", {"--optimizer", "adam", "--epochs", "4", "--global-batch", "40",
                                                "--accumulate", "2", "--clip-grad-norm", "50", "--evaluate-train"});
  expect_heads_as_alone(2, diabetes, "lr=1e-2:1:3,l2=0,0.1", {"lr", "l2"});
  expect_heads_as_alone(1,
                        table("iris_binary.csv", {"--task", "binary", "--optimizer", "adamw", "--amsgrad",
                                                  "--global-batch", "full", "--epochs", "20"}),
                        "weight-decay=0,0.1,lr=0.1", {"lr", "weight-decay"});
}

TEST(Sweep, HeadsStopByTheirOwnPatience) {
  const Words cancer = table("breast_cancer.csv", {"--task", "binary", "--epochs", "60", "--global-batch", "64",
                                                   "--momentum", "0.9", "--valid", "0.3", "--patience", "2"});
  expect_heads_as_alone(2, cancer, "lr=0.01,0.2,2", {"lr"});
  expect_heads_as_alone(1, cancer + Words{"--save-best", "--evaluate-train"}, "lr=0.01,0.2,2", {"lr"});
}

TEST(Sweep, AHeadThatDivergesDisturbsNoOther) {
  const ScratchFolder scratch;
  const Words diabetes = table("diabetes.csv", {"--epochs", "40", "--global-batch", "full"});
  const Words to_files{"--metrics", scratch / "m.jsonl", "--save", scratch / "best"};
  const auto outcome = train(2, diabetes + Words{"--sweep", "lr=1e9,0.1"} + to_files);
  EXPECT_THAT(outcome.out, AllOf(ContainsRegex("sweep +lr +train loss\n +0\\.1 .*  best\n +1e\\+09 .*  diverged\n")));
  train(2, diabetes + Words{"--lr", "0.1", "--save", scratch / "alone"});
  expect_near(scratch / "best", scratch / "alone");

  expect_refusal(2, diabetes + Words{"--sweep", "lr=1e9,1e10"}, 1, HasSubstr("the loss of each of 2 heads is"));
}

TEST(Sweep, AHeadThatDivergesAtTheLastStepIsNotTheBest) {
  const ScratchFolder scratch;
  train(2, table("diabetes.csv", {"--global-batch", "100", "--steps", "1", "--sweep", "lr=1e38,0.1", "--metrics",
                                  scratch / "m.jsonl"}));
  const auto heads = heads_in(scratch / "m.jsonl");
  ASSERT_EQ(heads.size(), 2U);
  EXPECT_EQ(heads[0]["lr"], 0.1);
  EXPECT_TRUE(heads[1]["train_loss"].is_null());
}

TEST(Sweep, OfSyntheticData) {
  const ScratchFolder scratch;
  train(2, {"--steps", "5", "--sweep", "lr=0.001,0.01", "--metrics", scratch / "m.jsonl"});
  train(2, {"--steps", "5", "--lr", "0.01", "--metrics", scratch / "alone.jsonl"});
  std::vector<double> losses, alone;
  for (const auto& event : read_metrics(scratch / "m.jsonl")) {
    if (event["event"] == "step" && event["head"] == 1) losses.push_back(event["loss"]);
  }
  for (const auto& event : read_metrics(scratch / "alone.jsonl")) {
    if (event["event"] == "step") alone.push_back(event["loss"]);
  }
  ASSERT_EQ(losses.size(), 5U);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i] / alone.at(i), 1, 1e-6);
}

TEST(Sweep, Refusals) {
  const auto refused = [](const Words& arguments, const std::string& message) {
    expect_refusal(1, arguments, 2, HasSubstr(message));
  };
  refused({"--sweep", "lr=0.1,0.2", "--lr", "0.1"}, "--lr is one value, and --sweep has values of it");
  refused({"--sweep", "momentum=0.9"}, "--sweep momentum is unknown; accepted: lr, weight-decay, l2");
  refused({"--sweep", "0.1,0.2"}, "--sweep: '0.1,0.2' is not of the form NAME=X,...");
  refused({"--sweep", "lr=0.1,lr=0.2"}, "--sweep: lr is there twice");
  refused({"--sweep", "lr=0.1,x"}, "--sweep lr: 'x' is no finite number");
  refused({"--sweep", "lr="}, "--sweep lr: '' is no finite number");
  refused({"--sweep", "lr=1e-3:1:50,l2=1e-3:1:50"}, "--sweep: 2500 heads are too many; there can be 1024");
  refused(table("iris.csv", {"--task", "multiclass", "--optimizer", "lbfgs", "--sweep", "lr=1"}),
          "--sweep is not for --optimizer lbfgs");
  refused(table("diabetes.csv", {"--sweep", "lr=1,0.1", "--tolerance", "0.1"}),
          "--tolerance ends one training, and --sweep makes several at once");
  refused(table("diabetes.csv", {"--sweep", "l2=1,0.1", "--alpha", "0.1"}), "--alpha is --l2 in other words");
}

}  // namespace
}  // namespace ddp::test
