// The program on GPUs against the program on CPUs.
#include "support/program.hpp"

namespace ddp::test {
namespace {

std::vector<double> losses(int ranks, const std::string& device, const std::vector<std::string>& arguments) {
  const ScratchFolder scratch;
  std::vector<std::string> all = {"--device", device, "--metrics", scratch / "m.jsonl"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Outcome outcome = train(ranks, all);
  EXPECT_THAT(outcome.err, ::testing::Not(::testing::HasSubstr("fakegpu"))) << "a leak, most likely";
  std::vector<double> result;
  for (const auto& event : read_metrics(scratch / "m.jsonl")) {
    if (event["event"] == "step") result.push_back(event["loss"]);
  }
  return result;
}

/// Sums of float32 products in another order differ by some ulp, that is by less than 1e-5 after a few steps.
void expect_same_losses(int ranks, std::size_t steps, const std::vector<std::string>& arguments) {
  const std::vector<double> cpu = losses(ranks, "cpu", arguments), cuda = losses(ranks, "cuda", arguments);
  ASSERT_EQ(cuda.size(), steps);
  ASSERT_EQ(cpu.size(), steps);
  for (std::size_t i = 0; i < steps; ++i) EXPECT_NEAR(cuda[i], cpu[i], 1e-5 * cpu[i]) << "step " << i + 1;
}

TEST(Training, OfTheSmallestProgramIsThatOfCpus) {
  for (const int ranks : {1, 2}) expect_same_losses(ranks, 1, {});
}

TEST(Training, OnATableWithMomentumIsThatOfCpus) {
  for (const int ranks : {1, 2, 3}) {
    expect_same_losses(ranks, 8,
                       {"--data", data_path("cases/BASE.csv"), "--target", "y", "--global-batch", "full", "--steps",
                        "8", "--lr", "0.05", "--momentum", "0.9", "--init", "zeros"});
  }
}

// A batch that 2 or 3 ranks cannot share out evenly: they record the same steps all the same.
TEST(Training, OnUnevenBatchesIsThatOfCpus) {
  for (const int ranks : {2, 3}) {
    expect_same_losses(ranks, 20,
                       {"--data", data_path("cases/BASE.csv"), "--target", "y", "--global-batch", "5", "--steps", "20",
                        "--lr", "0.01", "--momentum", "0.9", "--average", "ranks"});
  }
}

TEST(Training, ByLbfgsIsThatOfCpus) {
  const ScratchFolder scratch;
  for (const int ranks : {1, 2}) {
    std::vector<double> objective;
    for (const char* device : {"cpu", "cuda"}) {
      const auto outcome =
          train(ranks, {"--device", device, "--data", data_path("datasets/iris.csv"), "--task", "multiclass",
                        "--standardize", "--l2", "0.01", "--optimizer", "lbfgs", "--metrics", scratch / "m.jsonl"});
      EXPECT_THAT(outcome.err, ::testing::Not(::testing::HasSubstr("fakegpu")));
      objective.push_back(read_metrics(scratch / "m.jsonl").back()["objective"]);
    }
    EXPECT_NEAR(objective[1], objective[0], 1e-6 * objective[0]);
    EXPECT_NEAR(objective[1], 0.24367722664938243, 1e-6 * objective[0]);  // as in score_test
  }
}

// The next batch is read by a thread while the GPU works on this one.
TEST(Training, OnFeaturesThatStayInTheirFileIsThatOfCpus) {
  for (const int ranks : {1, 2}) {
    expect_same_losses(ranks, 12,
                       {"--data", data_path("cases/P20-c.npy"), "--stream", "--global-batch", "3", "--steps", "12",
                        "--log-every", "1", "--lr", "0.05"});
  }
}

}  // namespace
}  // namespace ddp::test
