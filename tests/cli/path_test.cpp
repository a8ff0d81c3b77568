// --l2-path: penalties chosen by rows held out, against scikit-learn 1.2.1 (KFold without shuffling; Ridge with svd;
// LogisticRegression with tol 1e-9 on features standardised over all rows; alpha = l2 / 2 · rows, C = 1 / (l2 · rows)
// of the rows of a fit).
#include <fmt/format.h>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Right {
  double l2, loss, error, score;
};

std::vector<std::string> on(const std::string& file, std::vector<std::string> more) {
  more.insert(more.begin(), {"--data", data_path("datasets/" + file)});
  return more;
}

std::vector<nlohmann::json> penalties(const std::string& path) {
  auto events = read_metrics(path);
  std::erase_if(events, [](const auto& event) { return event["event"] != "penalty"; });
  return events;
}

void expect_scores(const std::vector<nlohmann::json>& events, const std::vector<Right>& right, const std::string& score,
                   double tolerance) {
  ASSERT_EQ(events.size(), right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    SCOPED_TRACE(right[i].l2);
    EXPECT_NEAR(events[i]["l2"].get<double>() / right[i].l2, 1, 1e-14);
    EXPECT_NEAR(events[i]["valid_loss"].get<double>() / right[i].loss, 1, tolerance);
    EXPECT_NEAR(events[i]["valid_loss_standard_error"].get<double>() / right[i].error, 1, 10 * tolerance);
    EXPECT_NEAR(events[i]["valid_" + score].get<double>() / right[i].score, 1, tolerance);
  }
}

TEST(Path, OfRidgeIsThatOfScikitLearn) {
  const std::vector<Right> right{{1e-6, 2993.081257945687, 75.38436562275845, 0.482316430717688},
                                 {1e-5, 2993.080789525406, 75.37397606003293, 0.48231638325728754},
                                 {1e-4, 2993.076528708545, 75.27025890795302, 0.4823158354901329},
                                 {1e-3, 2993.074730573591, 74.25061869352722, 0.48230331001338833},
                                 {1e-2, 2995.954797859255, 65.54010345621592, 0.48168068460718977},
                                 {1e-1, 3050.115293143489, 32.14803538810742, 0.4715893048916172},
                                 {1, 3158.09959091405, 21.21382900060702, 0.4518798369189005}};
  for (const int ranks : {1, 2, 3}) {
    const ScratchFolder scratch;
    const auto outcome = train(ranks, on("diabetes.csv", {"--target", "target", "--optimizer", "exact", "--l2-path",
                                                          "1e-6:1:7", "--folds", "5", "--no-shuffle", "--metrics",
                                                          scratch / "m.jsonl", "--save", scratch / "m.safetensors"}));
    EXPECT_THAT(outcome.err, IsEmpty());
    EXPECT_THAT(outcome.out, AllOf(ContainsRegex("\n +0\\.001 +0\\.221 +2993\\.075 +74\\.3 +0\\.482303  best\n"),
                                   ContainsRegex("\n +0\\.1 .*  strongest within one standard error of the best\n")));
    expect_scores(penalties(scratch / "m.jsonl"), right, "r2", 1e-11);
    EXPECT_EQ(read_metrics(scratch / "m.jsonl").back()["l2"], 1e-3);

    train(1, on("diabetes.csv", {"--target", "target", "--optimizer", "exact", "--l2", "0.001", "--save",
                                 scratch / "alone.safetensors"}));
    const auto chosen = read_safetensors(scratch / "m.safetensors").at("weight").floats();
    const auto alone = read_safetensors(scratch / "alone.safetensors").at("weight").floats();
    for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_FLOAT_EQ(chosen[i], alone[i]);
  }
}

TEST(Path, TakesTheStrongestPenaltyWithinOneStandardErrorWhenAsked) {
  const ScratchFolder scratch;
  train(2, on("diabetes.csv",
              {"--target", "target", "--optimizer", "exact", "--precision", "fp64", "--l2-path", "0.001,1,0.1,10",
               "--folds", "5", "--no-shuffle", "--one-standard-error", "--metrics", scratch / "m.jsonl"}));
  EXPECT_EQ(read_metrics(scratch / "m.jsonl").back()["l2"], 0.1);
}

/// Held-out losses move as the parameters do, which L-BFGS leaves where the objective is right to 1e-6.
constexpr double of_float = 1e-4;

TEST(Path, OfClassesIsThatOfScikitLearn) {
  const std::vector<Right> cancer{{0.001, 0.09389371333748724, 0.024457380811044458, 0.9736686849868033},
                                  {0.01, 0.09096603375122292, 0.012866713644637125, 0.9789318428815401},
                                  {0.1, 0.15055994085315166, 0.019533621053797832, 0.9561092997981678}};
  const std::vector<Right> digits{{0.001, 0.23343655319216414, 0.03500071524764652, 0.9321090706733445},
                                  {0.01, 0.2704280387427887, 0.024571739139491327, 0.9287701725097385},
                                  {0.1, 0.5322257076472399, 0.014359814808233206, 0.9120756816917085}};
  const auto path = [](const std::string& file, const std::string& task, const std::string& folds,
                       const std::string& metrics) {
    return on(file, {"--task", task, "--standardize", "--optimizer", "lbfgs", "--l2-path", "0.001,0.01,0.1", "--folds",
                     folds, "--no-shuffle", "--metrics", metrics});
  };
  for (const int ranks : {1, 3}) {
    const ScratchFolder scratch;
    const auto outcome = train(ranks, path("breast_cancer.csv", "binary", "5", scratch / "m.jsonl"));
    EXPECT_THAT(outcome.out, AllOf(ContainsRegex("fold +5 of 5: 3 penalties on 113 rows\n"),
                                   ContainsRegex("\n +0\\.01 +0\\.175747 .*  best\n")));
    expect_scores(penalties(scratch / "m.jsonl"), cancer, "accuracy", of_float);
    EXPECT_EQ(read_metrics(scratch / "m.jsonl").back()["l2"], 0.01);
  }
  const ScratchFolder scratch;
  train(2, path("digits.csv", "multiclass", "3", scratch / "m.jsonl"));
  expect_scores(penalties(scratch / "m.jsonl"), digits, "accuracy", of_float);
}

/// Each value's model as it would be alone, on the same rows.
TEST(Path, OfValidationRowsIsThatOfEachPenaltyAlone) {
  for (const std::string optimizer : {"exact", "lbfgs"}) {
    const ScratchFolder scratch;
    const auto arguments = [&](std::vector<std::string> more) {
      more.insert(more.end(), {"--target", "target", "--standardize", "--valid", "0.25", "--optimizer", optimizer});
      return on("diabetes.csv", more);
    };
    train(2, arguments({"--l2-path", "0.3,0.01,0", "--metrics", scratch / "path.jsonl", "--save", scratch / "path"}));
    const auto events = penalties(scratch / "path.jsonl");
    ASSERT_EQ(events.size(), 3U);
    double best = events[0]["valid_loss"];
    for (const auto& event : events) {
      best = std::min(best, event["valid_loss"].get<double>());
      const std::string l2 = fmt::format("{}", event["l2"].get<double>());
      train(2, arguments({"--l2", l2, "--metrics", scratch / "one.jsonl"}));
      const auto end = read_metrics(scratch / "one.jsonl").back();
      EXPECT_NEAR(event["valid_loss"].get<double>() / end["valid_scores"]["loss"].get<double>(), 1, 1e-4) << l2;
      EXPECT_NEAR(event["valid_r2"].get<double>() / end["valid_scores"]["r2"].get<double>(), 1, 1e-4) << l2;
    }
    const auto end = read_metrics(scratch / "path.jsonl").back();
    EXPECT_NEAR(end["valid_scores"]["loss"].get<double>() / best, 1, 1e-6) << "the best one's model is what is left";
  }
}

TEST(Path, FoldsOfAShuffledTableAreThoseOfTheSeed) {
  std::vector<std::vector<nlohmann::json>> runs;
  for (const auto& [ranks, seed] : {std::pair{1, "0"}, {3, "0"}, {1, "1"}}) {
    const ScratchFolder scratch;
    train(ranks, on("iris.csv", {"--task", "multiclass", "--optimizer", "lbfgs", "--l2-path", "0.01,1", "--standardize",
                                 "--folds", "4", "--seed", seed, "--metrics", scratch / "m.jsonl"}));
    runs.push_back(penalties(scratch / "m.jsonl"));
  }
  const auto loss = [&](std::size_t run, std::size_t fold) {
    return runs.at(run).at(0)["valid_losses"][fold].get<double>();
  };
  for (std::size_t fold = 0; fold < 4; ++fold) {
    EXPECT_NEAR(loss(0, fold) / loss(1, fold), 1, of_float);
    EXPECT_GT(std::abs(loss(0, fold) / loss(2, fold) - 1), 10 * of_float);
  }
}

TEST(Path, RanksThatCannotBeginSayItOnce) {
  const ScratchFolder scratch;
  std::ofstream(scratch / "huge.csv") << "x,y\n1e30,1\n-2e30,2\n3e30,5\n1e29,3\n";
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--l2-path", "0.1,1", "--folds", "2"}}) {
    std::vector<std::string> arguments{"--data", scratch / "huge.csv", "--optimizer", "lbfgs"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    for (const int ranks : {1, 2}) expect_refusal(ranks, arguments, 1, HasSubstr("not finite where the search begins"));
  }
}

TEST(Path, RefusesWhatItCannotHonour) {
  const std::vector<std::vector<std::string>> wrong{
      {"--optimizer exact or lbfgs", "--l2-path", "1,2", "--folds", "3"},
      {"--folds K, or --valid", "--l2-path", "1,2", "--optimizer", "exact"},
      {"--folds needs --l2-path", "--folds", "3", "--optimizer", "exact"},
      {"--one-standard-error needs --folds", "--one-standard-error", "--l2-path", "1", "--valid", "0.2", "--optimizer",
       "exact"},
      {"exclude each other", "--l2-path", "1", "--valid", "0.2", "--folds", "3", "--optimizer", "exact"},
      {"--folds must be 2 or more", "--l2-path", "1", "--folds", "1", "--optimizer", "exact"},
      {"--folds 9: there are only 8 rows", "--l2-path", "1", "--folds", "9", "--optimizer", "exact"},
      {"--folds 9: there are only 8 rows", "--l2-path", "1", "--folds", "9", "--optimizer", "lbfgs"},
      {"--l2 is one penalty", "--l2-path", "1", "--l2", "1", "--folds", "3", "--optimizer", "exact"},
      {"--C is", "--l2-path", "1", "--C", "1", "--folds", "3", "--optimizer", "lbfgs"},
      {"--no-shuffle is of steps or --folds", "--no-shuffle", "--optimizer", "lbfgs"},
      {"--patience", "--patience", "3", "--valid", "0.5", "--l2-path", "1", "--optimizer", "lbfgs"},
      {"LO:HI:N", "--l2-path", "1:2", "--folds", "3", "--optimizer", "exact"},
      {"'0' is no", "--l2-path", "0:1:3", "--folds", "3", "--optimizer", "exact"},
      {"--l2-path: '1'", "--l2-path", "2:1:3", "--folds", "3", "--optimizer", "exact"},
      {"--l2-path: 'x'", "--l2-path", "1,x", "--folds", "3", "--optimizer", "exact"}};
  for (const auto& one : wrong) {
    std::vector<std::string> arguments{"--data", data_path("cases/BASE.csv")};
    arguments.insert(arguments.end(), one.begin() + 1, one.end());
    expect_refusal(1, arguments, 2, HasSubstr(one[0]));
  }
  expect_refusal(2, {"--data", data_path("cases/BASE.csv"), "--l2-path", "1", "--folds", "9", "--optimizer", "exact"},
                 2, HasSubstr("there are only 8 rows"));
}

}  // namespace
}  // namespace ddp::test
