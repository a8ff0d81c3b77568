// --checkpoint and --resume: a training with breaks is the training without.
#include <cmath>
#include <filesystem>
#include <set>

#include "support/program.hpp"

namespace ddp::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Arguments = std::vector<std::string>;

Arguments operator+(Arguments all, const Arguments& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

struct Trained {
  nlohmann::json end;
  std::vector<nlohmann::json> epochs;
  std::string out, err;
};

Trained trained(int ranks, const Arguments& arguments) {
  const ScratchFolder scratch;
  const auto outcome = train(ranks, arguments + Arguments{"--metrics", scratch / "m.jsonl"});
  Trained result{{}, {}, outcome.out, outcome.err};
  for (const auto& event : read_metrics(scratch / "m.jsonl")) {
    if (event["event"] == "epoch") result.epochs.push_back(event);
    if (event["event"] == "end") result.end = event;
  }
  return result;
}

void expect_same(const Trained& one, const Trained& whole) {
  for (const char* name : {"steps", "epochs", "train_loss", "objective", "parameters_hash", "best_epoch"}) {
    EXPECT_EQ(one.end.value(name, nlohmann::json()), whole.end.value(name, nlohmann::json())) << name;
  }
  ASSERT_LE(one.epochs.size(), whole.epochs.size());
  for (std::size_t i = 1; i <= one.epochs.size(); ++i) {
    EXPECT_EQ(one.epochs[one.epochs.size() - i], whole.epochs[whole.epochs.size() - i]);
  }
}

/// Trains with breaks after these steps, and expects what there is without, to the bit.
void expect_breaks_change_nothing(const Arguments& arguments, const Arguments& breaks) {
  const auto whole = trained(2, arguments);
  const ScratchFolder scratch;
  const Arguments with = arguments + Arguments{"--checkpoint", scratch / "c", "--resume"};
  for (const auto& step : breaks) trained(2, with + Arguments{"--steps", step});
  const auto resumed = trained(2, with);
  EXPECT_THAT(resumed.out, HasSubstr("of step " + breaks.back() + "\n"));
  expect_same(resumed, whole);
  // What is complete is not trained any further.
  const auto again = trained(2, with);
  EXPECT_EQ(again.end["parameters_hash"], whole.end["parameters_hash"]);
  EXPECT_EQ(again.end["steps"], whole.end["steps"]);
  EXPECT_EQ(again.end["train_loss"], whole.end["train_loss"]);
  EXPECT_EQ(again.end["rows_per_s"], 0);
}

Arguments diabetes(const Arguments& more) {
  return Arguments{"--data", data_path("datasets/diabetes.csv"), "--standardize", "--lr", "0.01"} + more;
}
Arguments iris(const Arguments& more) {
  return Arguments{"--data", data_path("datasets/iris.csv"), "--task", "multiclass", "--standardize"} + more;
}

TEST(Resume, SgdWithMomentum) {  // 9 steps an epoch
  expect_breaks_change_nothing(diabetes({"--global-batch", "50", "--momentum", "0.9", "--nesterov", "--schedule",
                                         "step:5:0.8", "--epochs", "4", "--seed", "3"}),
                               {"1", "9", "14", "35"});
}

TEST(Resume, AdamWithAccumulationAndClipping) {  // 15 batches, so 4 steps an epoch, the last of them of 3 batches
  expect_breaks_change_nothing(
      diabetes({"--global-batch", "30", "--accumulate", "4", "--optimizer", "adam", "--amsgrad", "--schedule",
                "cosine:40", "--clip-grad-norm", "5", "--l2", "0.01", "--epochs", "5", "--evaluate-train"}),
      {"3", "4", "11"});
}

TEST(Resume, AdamwWithValidation) {
  expect_breaks_change_nothing(iris({"--optimizer", "adamw", "--lr", "0.3", "--global-batch", "16", "--valid", "0.2",
                                     "--save-best", "--patience", "3", "--epochs", "40"}),
                               {"5", "16"});
}

TEST(Resume, AllRowsAtAStep) {  // whose losses are known a step later
  expect_breaks_change_nothing(iris({"--global-batch", "full", "--lr", "2", "--momentum", "0.9", "--valid", "0.2",
                                     "--patience", "4", "--save-best", "--tolerance", "1e-9", "--epochs", "60"}),
                               {"1", "7", "11"});
}

TEST(Resume, WeightsOfClasses) {
  expect_breaks_change_nothing(
      iris({"--class-weights", "1,2,3", "--global-batch", "32", "--average", "ranks", "--epochs", "5"}), {"7"});
}

TEST(Resume, SyntheticData) {
  expect_breaks_change_nothing({"--in", "7", "--out", "3", "--batch-size", "5", "--accumulate", "2", "--epochs", "12"},
                               {"1", "8"});
}

TEST(Resume, ASweep) {
  expect_breaks_change_nothing(
      iris({"--sweep", "lr=0.01,0.5,weight-decay=0,0.01", "--momentum", "0.9", "--global-batch", "40", "--valid", "0.2",
            "--patience", "2", "--save-best", "--epochs", "12"}),
      {"2", "9", "13"});
}

TEST(Resume, OnAnotherNumberOfRanks) {
  const auto arguments = diabetes({"--global-batch", "50", "--optimizer", "adam", "--epochs", "6"});
  const auto model_of = [&](const Arguments& more) {
    const ScratchFolder scratch;
    trained(1, arguments + more + Arguments{"--save", scratch / "m.safetensors"});
    return read_safetensors(scratch / "m.safetensors").at("weight").floats();
  };
  const ScratchFolder scratch;
  const Arguments resume{"--checkpoint", scratch / "c", "--resume"};
  trained(3, arguments + resume + Arguments{"--steps", "5"});
  trained(2, arguments + resume + Arguments{"--steps", "27"});
  const auto resumed = model_of(resume), whole = model_of({});
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(resumed[i], whole[i], 1e-5 * (1 + std::abs(whole[i])));
}

TEST(Resume, MoreEpochsAndAnotherLearningRate) {
  const ScratchFolder scratch;
  const auto hash_of = [&](const std::string& epochs, const std::string& lr, const Arguments& more) {
    const Arguments arguments{"--data", data_path("datasets/diabetes.csv"), "--standardize", "--epochs", epochs, "--lr",
                              lr};
    return trained(2, arguments + more).end["parameters_hash"];
  };
  const Arguments resume{"--checkpoint", scratch / "c", "--resume"};
  const auto whole = hash_of("6", "0.01", {});
  EXPECT_NE(hash_of("2", "0.01", resume), whole);
  EXPECT_EQ(hash_of("6", "0.01", resume), whole);
  EXPECT_EQ(hash_of("7", "0", resume), whole);
}

TEST(Resume, FromNothingIsTheBeginning) {
  const ScratchFolder scratch;
  const auto first = trained(2, {"--checkpoint", scratch / "deep/c", "--resume"});
  EXPECT_THAT(first.out, HasSubstr("from the beginning"));
  EXPECT_EQ(first.end["parameters_hash"], trained(2, {}).end["parameters_hash"]);
}

TEST(Resume, MetricsGoOnInTheirFile) {
  const ScratchFolder scratch;
  const Arguments arguments{"--checkpoint", scratch / "c", "--resume", "--metrics", scratch / "m", "--quiet"};
  train(2, arguments + Arguments{"--steps", "3"});
  std::ofstream(scratch / "m", std::ios::app) << "{\"event\":\"st";  // killed in its middle
  train(2, arguments + Arguments{"--steps", "5"});
  std::vector<std::string> seen;
  for (const auto& event : read_metrics(scratch / "m")) {
    seen.push_back(event["event"].get<std::string>() + (event["event"] == "step" ? event["step"].dump() : ""));
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"start", "step1", "step2", "step3", "epoch", "checkpoint", "end", "start",
                                            "resume", "step4", "step5", "epoch", "checkpoint", "end"}));
  const auto last = read_metrics(scratch / "m")[12];
  EXPECT_EQ(last["step"], 5);
  EXPECT_EQ(last["file"], scratch / "c/step-000000000005.safetensors");
}

/// A folder with the checkpoints of steps 20 and 23.
class Folder : public ::testing::Test {
 protected:
  Folder() {
    const auto run = trained(2, arguments_ + Arguments{"--checkpoint-every", "5", "--steps", "23"});
    hash_ = run.end["parameters_hash"];
  }
  std::string file(const std::string& step) const { return folder_ + "/step-0000000000" + step + ".safetensors"; }
  static void damage(const std::string& path) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-1, std::ios::end);
    file.put('x');
  }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }

  ScratchFolder scratch_;
  std::string folder_ = scratch_ / "c", hash_;
  Arguments arguments_ = diabetes({"--checkpoint", folder_, "--keep", "2", "--momentum", "0.9"});
};

TEST_F(Folder, HoldsTheNewestOnes) {
  EXPECT_EQ(names(), (std::set<std::string>{fs::path(file("20")).filename(), fs::path(file("23")).filename()}));
}

TEST_F(Folder, ATornOneIsSkippedWithAWarning) {
  fs::resize_file(file("23"), 100);
  const auto run = trained(3, arguments_ + Arguments{"--resume", "--steps", "23"});
  EXPECT_EQ(occurrences(run.err, "linear_ddp: warning: "), 1U) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("step-000000000023"), HasSubstr("truncated")));
  EXPECT_THAT(run.out, HasSubstr("of step 20\n"));
  damage(file("23"));
  const auto again = trained(2, arguments_ + Arguments{"--resume", "--steps", "23"});
  EXPECT_THAT(again.err, HasSubstr("checksum"));
  EXPECT_EQ(again.end["parameters_hash"], hash_);
}

TEST_F(Folder, OfTornOnesOnlyIsRefused) {
  damage(file("20"));
  fs::resize_file(file("23"), 0);
  expect_refusal(2, arguments_ + Arguments{"--resume"}, 2,
                 AllOf(HasSubstr("no complete checkpoint"), HasSubstr("truncated: need 8 bytes, have 0")));
}

TEST_F(Folder, IsNotTakenByAnotherTraining) {
  expect_refusal(2, arguments_, 2, AllOf(HasSubstr("holds checkpoints of an earlier training"), HasSubstr("--resume")));
  std::ifstream file(data_path("datasets/diabetes.csv"));
  std::string table{std::istreambuf_iterator<char>(file), {}};
  table[table.find_last_of("0123456789")] ^= 1;
  std::ofstream(scratch_ / "other.csv") << table;
  const std::vector<std::pair<std::string, Arguments>> others{
      {"--seed was 0 then and is 1 now", {"--seed", "1"}},
      {"--momentum was 0.9 then and is 0.5 now", {"--momentum", "0.5"}},
      {"--global-batch (rows of all ranks at a step) was 256 then and is 50 now", {"--global-batch", "50"}},
      {"--weight-decay was 0.0 then and is 0.1 now", {"--weight-decay", "0.1"}},
      {"--optimizer was \"sgd\" then and is \"adam\" now", {"--optimizer", "adam"}},
      {"the number of rows to train on was 442 then and is 397 now", {"--valid", "0.1"}},
      {"the targets of --data was ", {"--data", scratch_ / "other.csv"}},
      {"of step 23, beyond the 22 of --epochs and --steps", {"--steps", "22"}}};
  for (const auto& [message, more] : others) {
    Arguments all = arguments_ + Arguments{"--resume"};
    if (more[0] != "--steps") all = all + Arguments{"--steps", "30"};
    if (more[0] == "--optimizer") all.erase(all.end() - 5, all.end() - 3);  // but not Adam's --momentum
    const auto given = std::find(all.begin(), all.end(), more[0]);
    if (given != all.end()) all.erase(given, given + 2);
    expect_refusal(1, all + more, 2, HasSubstr(message));
  }
  EXPECT_EQ(names().size(), 2U);
}

TEST(Folders, ThatCannotBeWrittenToAreRefusedBeforeTheTraining) {
  for (const char* folder : {"/dev/null/x", "/proc/x"}) {
    expect_refusal(2, {"--data", "/nowhere", "--checkpoint", folder}, 1,
                   AllOf(HasSubstr(folder), Not(HasSubstr("nowhere"))));
  }
}

TEST(Options, OfCheckpointsAreRefusedWhereTheyMeanNothing) {
  for (const Arguments& arguments : {Arguments{"--resume"}, {"--keep", "2"}, {"--checkpoint-every", "5"}}) {
    expect_refusal(1, arguments, 2, AllOf(HasSubstr(arguments[0]), HasSubstr("needs --checkpoint")));
  }
  for (const char* optimizer : {"lbfgs", "exact"}) {
    expect_refusal(1, {"--data", data_path("cases/BASE.csv"), "--optimizer", optimizer, "--checkpoint", "c"}, 2,
                   AllOf(HasSubstr("--checkpoint"), HasSubstr(optimizer)));
  }
  for (const char* every : {"0", "0s", "s", "5d", "-3", "1.5m", "1000001h"}) {
    expect_refusal(1, {"--checkpoint", "c", "--checkpoint-every", every}, 2, HasSubstr("--checkpoint-every"));
  }
}

// The limit is beyond what MPI needs for its own files.
TEST(Failure, OfADiskLeavesTheLastCheckpointAndEndsAllRanks) {
  const ScratchFolder scratch;
  const Arguments arguments{"--in", "2500", "--out", "2500", "--quiet", "--checkpoint", scratch / "c", "--resume"};
  train(2, arguments + Arguments{"--steps", "2"});
  const auto limited =
      run(Arguments{"bash", "-c", "ulimit -f 20000; exec \"$@\"", "-"} +
          mpirun(2, arguments + Arguments{"--steps", "1000", "--checkpoint-every", "3", "--metrics", scratch / "m"}));
  EXPECT_EQ(limited.status, 1) << limited.out << limited.err;
  EXPECT_EQ(occurrences(limited.err, "linear_ddp: error: "), 1U) << limited.err;
  EXPECT_THAT(limited.err, AllOf(HasSubstr("step-000000000003.safetensors"), HasSubstr("File too large")));
  const auto end = read_metrics(scratch / "m").back();
  EXPECT_EQ(end["status"], "error");
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch / "c"), fs::directory_iterator()), 1);
  EXPECT_THAT(
      train(2, {"--in", "2500", "--out", "2500", "--checkpoint", scratch / "c", "--resume", "--steps", "4"}).out,
      HasSubstr("of step 2\n"));
}

TEST(Failure, OfATrainingThatDivergesLeavesTheLastCheckpoint) {
  const ScratchFolder scratch;
  const Arguments arguments{"--data",         data_path("cases/N06-unscaled.csv"),
                            "--target",       "y",
                            "--global-batch", "full",
                            "--checkpoint",   scratch / "c",
                            "--resume"};
  train(2, arguments + Arguments{"--lr", "1e-12", "--epochs", "3"});
  expect_refusal(2, arguments + Arguments{"--lr", "0.1", "--epochs", "50", "--checkpoint-every", "1", "--keep", "50"},
                 1, HasSubstr("training diverged"));
  for (const auto& entry : fs::directory_iterator(scratch / "c")) {
    for (const float weight : read_safetensors(entry.path()).at("weight").floats()) EXPECT_TRUE(std::isfinite(weight));
  }
}

}  // namespace
}  // namespace ddp::test
