// What a training writes to --metrics, and how often it reports.
#include <algorithm>
#include <iterator>

#include "support/program.hpp"

namespace ddp::test {
namespace {

/// The metrics of a training on BASE.csv with lr 0: the parameters stay zeros, the loss of all rows is the mean of y².
std::vector<nlohmann::json> metrics_of_zeros(int ranks, const std::vector<std::string>& rest) {
  const ScratchFolder scratch;
  std::vector<std::string> arguments{
      "--data", data_path("cases/BASE.csv"), "--lr", "0", "--init", "zeros", "--metrics", scratch / "m"};
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  train(ranks, arguments);
  return read_metrics(scratch / "m");
}

std::vector<nlohmann::json> only(const std::string& event, const std::vector<nlohmann::json>& events) {
  std::vector<nlohmann::json> result;
  std::copy_if(events.begin(), events.end(), std::back_inserter(result),
               [&](const auto& e) { return e["event"] == event; });
  return result;
}

TEST(MetricsFile, TellsStartStepsEpochsAndEnd) {
  const auto events =
      metrics_of_zeros(2, {"--batch-size", "2", "--epochs", "3", "--log-every", "4", "--evaluate-train"});
  const auto& start = events.front();
  EXPECT_EQ(start["event"], "start");
  EXPECT_EQ(start["rows"], 8);
  EXPECT_EQ(start["parameters"], 3);
  // The options as they are used, by their names.
  EXPECT_EQ(start["batch-size"], 2);
  EXPECT_EQ(start["global-batch"], 4);
  EXPECT_EQ(start["epochs"], 3);
  EXPECT_TRUE(start["steps"].is_null());
  EXPECT_EQ(start["log-every"], 4);
  EXPECT_EQ(start["no-bias"], false);
  EXPECT_EQ(start["header"], "auto");
  const auto steps = only("step", events), epochs = only("epoch", events);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0]["step"], 4);
  EXPECT_EQ(steps[0]["epoch"], 1);
  EXPECT_EQ(steps[0]["rows"], 4);
  ASSERT_EQ(epochs.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(epochs[static_cast<std::size_t>(i)]["epoch"], i);
    EXPECT_EQ(epochs[static_cast<std::size_t>(i)]["step"], 2 * (i + 1));
    EXPECT_EQ(epochs[static_cast<std::size_t>(i)]["train_loss"], 2 * 10.53515625);  // a sum of exact floats
  }
  const auto& end = events.back();
  EXPECT_EQ(end["event"], "end");
  EXPECT_EQ(end["status"], "ok");
  EXPECT_EQ(end["steps"], 6);
  EXPECT_EQ(end["epochs"], 3);
  EXPECT_EQ(end["train_loss"], 2 * 10.53515625);
  EXPECT_EQ(end["objective"], end["train_loss"]);
  EXPECT_GT(end["seconds"], 0);
  EXPECT_GT(end["rows_per_s"], 0);
  EXPECT_EQ(end["parameters_hash"].get<std::string>().size(), 16U);
}

TEST(MiniBatches, DropLastLeavesOutTheShortStep) {
  EXPECT_EQ(metrics_of_zeros(2, {"--global-batch", "3", "--epochs", "2"}).back()["steps"], 6);
  const auto events = metrics_of_zeros(2, {"--global-batch", "3", "--epochs", "2", "--drop-last", "--steps", "9"});
  EXPECT_EQ(events.back()["steps"], 4);
  for (const auto& step : only("step", events)) EXPECT_EQ(step["rows"], 3);
}

TEST(MiniBatches, MoreRowsThanThereAreAreAllOfThem) {
  const auto events = metrics_of_zeros(4, {"--batch-size", "4611686018427387904"});  // 4 times this is 2^64
  EXPECT_EQ(events[0]["global-batch"], 8);
  EXPECT_EQ(events.back()["steps"], 1);
}

TEST(SyntheticRun, ALongOneIsReportedSome20Times) {
  const ScratchFolder scratch;
  const auto outcome = train(1, {"--steps", "2000", "--metrics", scratch / "m.jsonl"});
  std::vector<int> steps;
  for (const auto& event : read_metrics(scratch / "m.jsonl")) {
    if (event["event"] == "step") steps.push_back(event["step"]);
  }
  EXPECT_EQ(steps.size(), 20U);
  EXPECT_EQ(steps.back(), 2000);
  EXPECT_EQ(occurrences(outcome.out, "\nstep "), 20U);
  // Some are not there to be shown: of 100 steps each fifth is due, the next seventh shows it.
  EXPECT_EQ(occurrences(train(1, {"--steps", "100", "--log-every", "7"}).out, "\nstep "), 14U);
}

}  // namespace
}  // namespace ddp::test
