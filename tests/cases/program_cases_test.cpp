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

/// Mean squared error of a model on a table.
double mse_of(const std::string& model, const std::string& table, const std::vector<std::string>& more = {}) {
  const ScratchFolder scratch;
  std::vector<std::string> arguments{"evaluate", "--model", model, "--data", table, "--metrics", scratch / "m.jsonl"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  train(1, arguments);
  return read_metrics(scratch / "m.jsonl").back()["mse"];
}

TEST(ProgramCases, P40_AModelKnowsWhereItsIndicesStart) {
  const ScratchFolder scratch;
  const std::string one = case_file("P40-one-based.svm"), zero = case_file("P40-zero-based.svm");
  const auto trained_on = [&](const std::string& table, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--data",
                                       table,
                                       "--init",
                                       "zeros",
                                       "--lr",
                                       "0.3",
                                       "--global-batch",
                                       "full",
                                       "--epochs",
                                       "300",
                                       "--quiet",
                                       "--save",
                                       scratch / "m.safetensors"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    train(1, arguments);
    return scratch / "m.safetensors";
  };
  std::string model = trained_on(zero, {"--zero-based"});
  EXPECT_LT(mse_of(model, zero), 1e-10);
  // Its features are 0 and 1: there is no 2.
  expect_refusal(1, {"evaluate", "--model", model, "--data", one}, 2,
                 AllOf(HasSubstr("the index 2"), HasSubstr("2 features, 0 to 1")));
  model = trained_on(one, {});
  EXPECT_LT(mse_of(model, zero, {"--zero-based"}), 1e-10);
  expect_refusal(1, {"evaluate", "--model", model, "--data", zero}, 2, HasSubstr("--zero-based"));
}

TEST(ProgramCases, D11_ATableMayHaveAnIndexLessThanTheModels) {
  // y = 1 + 2a - 3b on rows whose b is 0, and nowhere given.
  const ScratchFolder scratch;
  const std::string model = scratch / "m.safetensors", table = scratch / "a.svm";
  std::ofstream(table) << "3 1:1\n5 1:2\n1\n";
  train(2, {"--data", case_file("P40-one-based.svm"), "--valid", table, "--init", "zeros", "--lr", "0.3",
            "--global-batch", "full", "--epochs", "300", "--quiet", "--save", model});
  EXPECT_LT(mse_of(model, table), 1e-10);
  train(3, {"predict", "--model", model, "--data", table, "--out", scratch / "p.csv", "--quiet"});
  EXPECT_EQ(occurrences(file_bytes(scratch / "p.csv"), "\n"), 4U);
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
