// Signals, kills and lost folders in the middle of a training that would take minutes.
#include <filesystem>

#include "support/program.hpp"

namespace ddp::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

/// A training of diabetes.csv, with its checkpoints and metrics in a folder of its own.
class Interrupted : public ::testing::Test {
 protected:
  Arguments arguments(const Arguments& more) const {
    Arguments all{"--data",
                  data_path("datasets/diabetes.csv"),
                  "--standardize",
                  "--optimizer",
                  "adam",
                  "--global-batch",
                  "50",
                  "--metrics",
                  metrics_,
                  "--log-every",
                  "100"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Arguments endless(const Arguments& more = {}) const {
    Arguments all = arguments({"--checkpoint", folder_, "--resume", "--steps", "1000000000", "--lr", "1e-7"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// Starts a command and, when `event` is in the metrics, does `what` to it: a line for the shell, in which $program
  /// is the number of the command's process, and $rank that of a rank when it is mpirun.
  Outcome interrupted(const Arguments& command, const std::string& what, const std::string& event = "step") const {
    // What runs beside a shell would ignore SIGINT.
    Arguments shell{"bash", "-c",
                    R"(env --default-signal=INT "$@" & program=$!
until grep -q '"event":")" +
                        event + R"("' ')" + metrics_ + R"(' 2>/dev/null; do sleep 0.05; done
read -r rank others < <(cat /proc/$program/task/*/children)
)" + what + "\nwait $program",
                    "-"};
    shell.insert(shell.end(), command.begin(), command.end());
    return run(shell);
  }
  static Arguments alone(Arguments arguments) {
    arguments.insert(arguments.begin(), LINEAR_DDP_PROGRAM);
    return arguments;
  }
  nlohmann::json last_event() const { return read_metrics(metrics_).back(); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }

  /// Goes on from what there is for some more steps, and expects what there is without a break, to the bit.
  void expect_no_difference(int ranks) {
    std::int64_t steps = 0;
    for (const auto& event : read_metrics(metrics_)) {
      if (event["event"] == "step") steps = std::max(steps, event["step"].get<std::int64_t>());
      if (event["event"] == "end") steps = std::max(steps, event["steps"].get<std::int64_t>());
    }
    const auto last = std::to_string(steps + 5);
    train(ranks, arguments({"--checkpoint", folder_, "--resume", "--steps", last, "--lr", "1e-7"}));
    auto resumed = last_event();
    train(ranks, arguments({"--steps", last, "--lr", "1e-7"}));
    auto whole = last_event();
    EXPECT_EQ(resumed["steps"], steps + 5);
    EXPECT_EQ(resumed["train_loss"], whole["train_loss"]);
    EXPECT_EQ(resumed["parameters_hash"], whole["parameters_hash"]);
  }

  ScratchFolder scratch_;
  std::string folder_ = scratch_ / "c", metrics_ = scratch_ / "m.jsonl";
};

TEST_F(Interrupted, ByASignalToOneRank) {
  for (const char* signal : {"USR1", "USR2", "TERM"}) {
    fs::remove(metrics_);
    const auto outcome = interrupted(mpirun(3, endless()), std::string("kill -") + signal + " $rank");
    EXPECT_EQ(outcome.status, 75) << outcome.out << outcome.err;
    EXPECT_EQ(occurrences(outcome.out, std::string("by SIG") + signal), 1U) << outcome.out;
    auto end = last_event();
    EXPECT_EQ(end["event"], "end");
    EXPECT_EQ(end["status"], "signal");
    EXPECT_FALSE(end["parameters_hash"].is_null());  // equal on all ranks
    EXPECT_THAT(outcome.out, HasSubstr("after step " + end["steps"].dump()));
    const auto number = end["steps"].dump();
    EXPECT_THAT(files(), ::testing::Contains("step-" + std::string(12 - number.size(), '0') + number + ".safetensors"));
  }
  EXPECT_EQ(files().size(), 3U);
  expect_no_difference(3);
}

TEST_F(Interrupted, ByControlC) {
  EXPECT_EQ(interrupted(alone(endless()), "kill -INT $program").status, 130);
  EXPECT_EQ(last_event()["status"], "signal");
  EXPECT_EQ(files().size(), 1U);
  fs::remove(metrics_);
  const auto without = interrupted(alone(arguments({"--steps", "1000000000", "--lr", "1e-7"})), "kill -INT $program");
  EXPECT_EQ(without.status, 130) << without.out << without.err;
  EXPECT_EQ(last_event()["status"], "signal");
}

TEST_F(Interrupted, WithoutACheckpointAsEver) {
  const auto outcome = interrupted(alone(arguments({"--steps", "1000000000", "--lr", "1e-7"})), "kill -TERM $program");
  EXPECT_EQ(outcome.status, 128 + 15);
}

TEST_F(Interrupted, ByAKill) {
  const auto outcome = interrupted(mpirun(2, endless({"--checkpoint-every", "700"})), "kill -KILL $rank", "checkpoint");
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(last_event()["event"], "end");
  expect_no_difference(2);
}

TEST_F(Interrupted, AfterACheckpointOfEverySecond) {
  interrupted(mpirun(2, endless({"--checkpoint-every", "1s"})), "kill -KILL $rank", "checkpoint");
  EXPECT_GE(files().size(), 1U);
  expect_no_difference(2);
}

TEST_F(Interrupted, ByTheLossOfItsFolder) {
  const auto outcome = interrupted(mpirun(2, endless({"--checkpoint-every", "500"})),
                                   "rm -r '" + folder_ + "'; touch '" + folder_ + "'", "checkpoint");
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_EQ(occurrences(outcome.err, "linear_ddp: error: "), 1U) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(folder_), HasSubstr("write")));
  EXPECT_EQ(last_event()["status"], "error");
}

}  // namespace
}  // namespace ddp::test
