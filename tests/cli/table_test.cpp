// Tables from the command line: gaps, classes, weights, several files.
#include <fmt/format.h>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Trains from zeros over all rows, and returns the bytes of the model.
std::string model_of(int ranks, std::vector<std::string> arguments, std::string* err = nullptr) {
  const ScratchFolder scratch;
  for (const char* more : {"--init", "zeros", "--global-batch", "full", "--epochs", "3000", "--lr", "0.3", "--quiet"}) {
    arguments.emplace_back(more);
  }
  arguments.insert(arguments.end(), {"--save", scratch / "m.safetensors"});
  const Outcome outcome = train(ranks, arguments);
  if (err != nullptr) *err = outcome.err;
  std::ifstream file(scratch / "m.safetensors", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Missing, ADroppedRowDoesNotChangeAnExactFit) {
  for (const int ranks : {1, 2, 3}) {
    const ScratchFolder scratch;
    const auto outcome = train(
        ranks, {"--data", data_path("cases/P04-missing.csv"), "--target", "y", "--missing", "drop", "--init", "zeros",
                "--global-batch", "full", "--epochs", "2000", "--lr", "0.1", "--save", scratch / "m.safetensors"});
    EXPECT_THAT(outcome.out, HasSubstr(": 7 rows"));
    EXPECT_EQ(occurrences(outcome.err, "linear_ddp: note: "), 1U) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("1 of 8 rows left out"));
    const StoredFile model = read_safetensors(scratch / "m.safetensors");
    const auto weight = model.at("weight").floats();
    EXPECT_NEAR(weight[0], 2, 1e-4);  // float rounding of 2000 steps
    EXPECT_NEAR(weight[1], -3, 1e-4);
    EXPECT_NEAR(model.at("bias").floats()[0], 1, 1e-4);
  }
}

TEST(Missing, IsAnErrorUnlessAPolicyIsChosen) {
  expect_refusal(2, {"--data", data_path("cases/P04-missing.csv"), "--target", "y"}, 2,
                 AllOf(HasSubstr("line 5, column 2 ('b')"), HasSubstr("missing")));
  expect_refusal(1, {"--data", data_path("cases/P04-missing.csv"), "--missing", "zero"}, 2,
                 AllOf(HasSubstr("--missing"), HasSubstr("error, drop, mean")));
}

TEST(Task, IsOneOfThree) {
  expect_refusal(1, {"--task", "ordinal"}, 2, AllOf(HasSubstr("--task"), HasSubstr("binary, multiclass")));
}

TEST(Files, OfAPatternAreOneTable) {
  const ScratchFolder scratch;
  std::ifstream base(data_path("cases/BASE.csv"));
  std::string header, line;
  std::getline(base, header);
  for (int row = 8; std::getline(base, line); ++row) {
    std::ofstream(scratch / fmt::format("part-{}.csv", row)) << header << "\n" << line << "\n";
  }
  for (const int ranks : {1, 2, 3, 4}) {
    const std::string one = model_of(ranks, {"--data", data_path("cases/BASE.csv"), "--target", "y"});
    EXPECT_FALSE(one.empty());
    EXPECT_EQ(model_of(ranks, {"--data", scratch / "part-*.csv", "--target", "y"}), one) << ranks;
  }
  expect_refusal(2, {"--data", scratch / "nothing-*.csv"}, 2, HasSubstr("nothing-*.csv: no file matches"));
}

TEST(Columns, ThatAreExcludedAreNoFeatures) {
  const auto with = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--data", data_path("cases/BASE.csv"), "--target", "y"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return model_of(1, arguments);
  };
  EXPECT_EQ(with({"--exclude", "b"}), with({"--features", "a"}));
  EXPECT_NE(with({"--exclude", "b"}), with({}));
  expect_refusal(1, {"--data", data_path("cases/BASE.csv"), "--weights", "b"}, 2, HasSubstr("weight"));
}

TEST(Columns, OfOneNameAreEachUsedAndTold) {
  std::string err;
  const auto model = model_of(2, {"--data", data_path("cases/P11-duplicate-names.csv"), "--target", "y"}, &err);
  EXPECT_THAT(err, HasSubstr("note: "));
  EXPECT_THAT(err, HasSubstr("several features have the name 'a'"));
  static_cast<void>(model_of(1, {"--data", data_path("cases/BASE.csv"), "--target", "y"}, &err));
  EXPECT_THAT(err, IsEmpty());
}

}  // namespace
}  // namespace ddp::test
