// Cases that the whole program shows: its status, its messages, its files.
#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string case_file(const std::string& name) {
  return data_path("cases/" + name);
}

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ProgramCases, P42_QueriesAreIgnoredWithOneNotice) {
  const auto outcome = train(3, {"--data", case_file("P42-qid-comment.svm")});
  EXPECT_EQ(occurrences(outcome.err, "qid:"), 1U) << outcome.err;
}

TEST(ProgramCases, N05_TwoClassesAreTwoWholeNumbersAndStoredAsTheyWere) {
  const auto refused = [](const char* file, const ::testing::Matcher<std::string>& message) {
    expect_refusal(1, {"--data", case_file(file), "--target", "label", "--task", "binary"}, 2, message);
  };
  refused("N05-three-in-logistic.csv", AllOf(HasSubstr("3 classes, '0', '1', '2'"), HasSubstr("--task multiclass")));
  refused("N05-one-class.csv", HasSubstr("one class, '1'"));
  refused("N05-half.csv", AllOf(HasSubstr("'0.5', '1'"), HasSubstr("--task regression")));
  expect_refusal(3, {"--data", case_file("N05-one-class.csv"), "--task", "multiclass"}, 2, HasSubstr("one class"));

  const ScratchFolder scratch;
  const std::string table = case_file("N05-pm1.csv"), model = scratch / "m.safetensors";
  train(2, {"--data", table, "--task", "binary", "--global-batch", "full", "--epochs", "500", "--lr", "0.5",
            "--momentum", "0.9", "--save", model, "--quiet"});
  const StoredFile stored = read_safetensors(model);
  EXPECT_NEAR(stored.at("bias").floats()[0], -0.60701379292571, 1e-5);
  EXPECT_NEAR(stored.at("weight").floats()[0], 1.21402758585142, 1e-5);
  train(2, {"predict", "--model", model, "--data", table, "--out", scratch / "p.csv"});
  EXPECT_EQ(file_bytes(scratch / "p.csv"),
            "label\n-1\n-1\n-1\n1\n1\n1\n");  // x = -2, -1, 0, 1, 2, 3 and 1 is above 1/2
}

TEST(ProgramCases, N06_ADivergedModelTakesNoGoodOnesPlace) {
  const ScratchFolder scratch;
  const std::string model = scratch / "m.safetensors";
  const std::vector<std::string> common{
      "--data", case_file("N06-unscaled.csv"), "--target", "y", "--lr", "0.1", "--save", model, "--global-batch",
      "full"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return more;
  };
  const auto diverging = with({"--epochs", "50", "--metrics", scratch / "m.jsonl"});
  const auto message = AllOf(HasSubstr("at step "), HasSubstr("--standardize"), HasSubstr("--lr"));
  expect_refusal(2, diverging, 1, message);
  EXPECT_FALSE(std::filesystem::exists(model));
  train(1, with({"--standardize", "--epochs", "500", "--quiet"}));
  const std::string good = file_bytes(model);
  EXPECT_NEAR(read_safetensors(model).at("weight").floats()[0], 0.0003, 1e-8);
  expect_refusal(1, diverging, 1, message);
  EXPECT_EQ(file_bytes(model), good);
}

TEST(ProgramCases, N09_WithoutAFeatureThereIsNothingToLearn) {
  expect_refusal(2, {"--data", case_file("N09-bias-only.csv"), "--target", "y"}, 2, HasSubstr("no feature is left"));
}

TEST(ProgramCases, O01_MetricsAreStrictJson) {
  const ScratchFolder scratch;
  const std::string metrics = scratch / "m.jsonl";
  expect_refusal(1,
                 {"--data", case_file("N06-unscaled.csv"), "--target", "y", "--epochs", "50", "--lr", "0.1",
                  "--metrics", metrics, "--log-every", "1"},
                 1, HasSubstr("at step "));
  const auto diverged = read_metrics(metrics);
  EXPECT_GT(diverged.size(), 2U);
  EXPECT_EQ(diverged.back()["event"], "end");
  EXPECT_EQ(diverged.back()["status"], "error");
  // What is no number is null: one row has no R². The others come back as they were.
  train(1, {"--data", case_file("P09-one-row.csv"), "--target", "y", "--lr", "0.012345678901234567", "--evaluate-train",
            "--metrics", metrics});
  const auto events = read_metrics(metrics);
  EXPECT_EQ(events.front()["lr"], 0.012345678901234567);
  const auto& r2 = events.back()["train_scores"]["r2"];
  EXPECT_TRUE(r2.is_null()) << r2;
  for (const char* word : {"NaN", "nan", "Infinity", "inf"}) EXPECT_THAT(file_bytes(metrics), Not(HasSubstr(word)));
}

TEST(ProgramCases, O02_ALogHasEachLineOnceAndAtOnce) {
  const auto outcome = train(4, {"--data", case_file("BASE.csv"), "--target", "y", "--epochs", "5"});
  EXPECT_THAT(outcome.out, AllOf(Not(HasSubstr("\r")), Not(HasSubstr("\033"))));
  EXPECT_EQ(occurrences(outcome.out, "\nepoch "), 5U) << outcome.out;
  std::istringstream lines(outcome.out);
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(seen.insert(line).second) << line;
  EXPECT_THAT(outcome.err, IsEmpty());

  const auto failed = run(mpirun(2, {"--data", case_file("L07-bad-line-last-quarter.csv"), "--target", "y"}));
  EXPECT_THAT(failed.err, HasSubstr("linear_ddp: error: rank 1"));
  EXPECT_THAT(failed.out, Not(HasSubstr("oops")));

  // Of a training that does not end soon, all lines so far.
  const auto endless = run({LINEAR_DDP_PROGRAM, "--steps", "1000000000000"}, {}, std::chrono::seconds(1));
  EXPECT_TRUE(endless.timed_out);
  EXPECT_THAT(endless.out, HasSubstr("110 parameters\n"));
}

}  // namespace
}  // namespace ddp::test
