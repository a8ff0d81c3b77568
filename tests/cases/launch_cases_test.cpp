// Cases of how trainings are ended and gone on with.
#include <cmath>
#include <filesystem>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

Arguments operator+(Arguments all, const Arguments& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Sends a signal to mpirun when the training has begun. One of SIGTERM's own statuses is mpirun's, 1, and it leaves
/// the ranks a second.
Outcome signalled(const char* signal, const Arguments& arguments, const std::string& metrics) {
  const std::string script = R"("$@" & until grep -q '"event":"step"' ')" + metrics +
                             R"(' 2>/dev/null; do sleep 0.05; done; kill -)" + signal + " $!; wait $!";
  return run(Arguments{"bash", "-c", script, "-"} + mpirun(2, arguments));
}

TEST(LaunchCases, L09_AJobThatIsToEndLeavesACheckpoint) {
  for (const char* signal : {"USR1", "TERM"}) {
    const ScratchFolder scratch;
    const std::string metrics = scratch / "m";
    const Arguments common{"--data",       data_path("cases/BASE.csv"),
                           "--lr",         "1e-8",
                           "--momentum",   "0.9",
                           "--batch-size", "1",
                           "--metrics",    metrics,
                           "--log-every",  "100"};
    const Arguments resume = common + Arguments{"--checkpoint", scratch / "c", "--resume"};
    const auto stopped = signalled(signal, resume + Arguments{"--steps", "1000000000"}, metrics);
    EXPECT_EQ(stopped.status, signal == std::string("USR1") ? 75 : 1) << stopped.err;
    const auto end = read_metrics(metrics).back();
    EXPECT_EQ(end["event"], "end");
    EXPECT_EQ(end["status"], "signal");
    const auto files = std::filesystem::directory_iterator(scratch / "c");
    EXPECT_EQ(std::distance(files, std::filesystem::directory_iterator()), 1);

    const Arguments steps{"--steps", std::to_string(end["steps"].get<std::int64_t>() + 11)};
    train(2, resume + steps);
    const auto resumed = read_metrics(metrics).back();
    train(2, common + steps);
    EXPECT_EQ(resumed["parameters_hash"], read_metrics(metrics).back()["parameters_hash"]);
  }
}

TEST(LaunchCases, L12_ATornCheckpointIsNoStartFromZeros) {
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch / "c");
  std::filesystem::copy(data_path("cases/L12-truncated-ckpt.safetensors"), scratch / "c/step-000000000010.safetensors");
  const Arguments common{"--data", data_path("cases/BASE.csv"), "--target", "y", "--save", scratch / "m"};
  expect_refusal(
      2, common + Arguments{"--checkpoint", scratch / "c", "--resume"}, 2,
      HasSubstr("step-000000000010.safetensors: truncated: need 320 bytes, up to the end of tensor 'y', have "
                "150"));
  expect_refusal(2, common + Arguments{"--init", data_path("cases/L12-truncated-ckpt.safetensors")}, 2,
                 AllOf(HasSubstr("truncated: need 320 bytes"), HasSubstr("have 150")));
  EXPECT_FALSE(std::filesystem::exists(scratch / "m"));
}

TEST(LaunchCases, L13_TheNumberOfRanksMayChange) {
  const ScratchFolder scratch;
  const auto trained = [&](int ranks, const std::string& folder, const std::string& epochs) {
    train(ranks, {"--data", data_path("datasets/diabetes.csv"), "--standardize", "--optimizer", "adam", "--amsgrad",
                  "--lr", "0.1", "--global-batch", "50", "--seed", "7", "--epochs", epochs, "--checkpoint",
                  scratch / folder, "--resume", "--metrics", scratch / folder + ".jsonl"});
    return read_metrics(scratch / folder + ".jsonl").back();
  };
  const auto whole = trained(1, "whole", "10");
  const auto expected = read_safetensors(scratch / "whole/step-000000000090.safetensors");
  for (const int ranks : {3, 1}) {
    const std::string folder = "from" + std::to_string(ranks);
    trained(2, folder, "5");
    const auto end = trained(ranks, folder, "10");
    EXPECT_EQ(end["steps"], 90);
    EXPECT_EQ(end["epochs"], 10);
    EXPECT_NEAR(end["train_loss"], whole["train_loss"], 1e-5 * whole["train_loss"].get<double>());
    const auto resumed = read_safetensors(scratch / folder + "/step-000000000090.safetensors");
    EXPECT_EQ(resumed.metadata.at("optimizer.0.steps"), "90");
    for (const char* name :
         {"weight", "bias", "optimizer.0.exp_avg", "optimizer.0.exp_avg_sq", "optimizer.0.max_exp_avg_sq"}) {
      const auto one = resumed.at(name).floats(), other = expected.at(name).floats();
      // Sums of rounded gradients, relative to the greatest of them.
      float greatest = 0;
      for (const float value : other) greatest = std::max(greatest, std::abs(value));
      ASSERT_EQ(one.size(), other.size());
      for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], other[i], 1e-5F * greatest) << name;
    }
  }
}

}  // namespace
}  // namespace ddp::test
