// --optimizer exact: least squares and ridge as a user solves them, and scikit-learn's spellings of the penalty.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <tuple>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

nlohmann::json optima() {
  return nlohmann::json::parse(std::ifstream(data_path("datasets/least_squares.json")));
}

std::vector<std::string> exact(const std::string& file, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"--data", data_path("datasets/" + file), "--optimizer", "exact"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Exact, SavesTheOptimumForAnyNumberOfRanks) {
  const auto right = optima()["diabetes"];
  for (const int ranks : {1, 2, 3}) {
    const ScratchFolder scratch;
    const auto outcome = train(ranks, exact("diabetes.csv", {"--precision", "fp64", "--save", scratch / "m.safetensors",
                                                             "--metrics", scratch / "m.jsonl", "--summary"}));
    EXPECT_THAT(outcome.out, ContainsRegex("solved +QR, refined to the last digit; condition 2[0-9]{2}"));
    EXPECT_THAT(outcome.out, ContainsRegex("s5 +68\\.48312496478829 +15\\.66971923870[0-9]+ +4\\.37"));
    EXPECT_THAT(outcome.err, IsEmpty());
    const auto stored = read_safetensors(scratch / "m.safetensors");
    EXPECT_EQ(stored.at("weight").dtype, "F64");
    EXPECT_THAT(stored.at("weight").doubles(), ElementsAreArray(right["weight"][0].get<std::vector<double>>()));
    EXPECT_THAT(stored.at("bias").doubles(), ElementsAreArray(right["bias_values"].get<std::vector<double>>()));
    const auto end = read_metrics(scratch / "m.jsonl").back();
    EXPECT_NEAR(end["train_loss"].get<double>(), 2859.69634758675, 1e-11);
    EXPECT_NEAR(end["train_scores"]["r2"].get<double>(), 0.517748422220350, 1e-14);
    EXPECT_EQ(end["rank"], 11);
  }
}

TEST(Exact, OfSinglePrecisionByDefault) {
  const auto right = optima()["linnerud"];
  for (const int ranks : {1, 2, 3}) {
    const ScratchFolder scratch;
    const auto outcome = train(ranks, exact("linnerud.csv", {"--target", "Weight,Waist,Pulse", "--standardize",
                                                             "--save", scratch / "m.safetensors"}));
    EXPECT_THAT(outcome.out, ContainsRegex("solved +normal equations; condition 2\\.[0-9]+"));
    const auto stored = read_safetensors(scratch / "m.safetensors");
    EXPECT_EQ(stored.at("weight").dtype, "F32");
    const auto weight = stored.at("weight").floats();
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const double wanted = right["weight"][i / 3][i % 3];
      EXPECT_NEAR(weight[i], wanted, 1e-7 * std::abs(wanted));
    }
  }
}

/// A model of double precision says what its numbers say.
TEST(Exact, TheModelIsOfUse) {
  const ScratchFolder scratch;
  train(2, exact("Longley.csv", {"--target", "y", "--precision", "fp64", "--save", scratch / "m.safetensors"}));
  const std::vector<std::string> use{"--model", scratch / "m.safetensors", "--data", data_path("datasets/Longley.csv")};
  std::vector<std::string> evaluate{"evaluate"}, predict{"predict"};
  evaluate.insert(evaluate.end(), use.begin(), use.end());
  predict.insert(predict.end(), use.begin(), use.end());
  predict.insert(predict.end(), {"--out", scratch / "p.csv"});
  EXPECT_THAT(train(2, evaluate).out, HasSubstr("16 rows: R2 0.99547"));
  train(2, predict);
  std::ifstream file(scratch / "p.csv");
  std::string line;
  std::getline(file, line);
  std::getline(file, line);
  EXPECT_NEAR(std::stod(line), 60055.659970, 1e-6);  // NIST's first predicted value
}

TEST(Exact, TellsOfDependentFeatures) {
  const ScratchFolder scratch;
  std::ofstream(scratch / "t.csv") << "a,b,total,constant,y\n1,2,3,5,1\n2,5,7,5,2\n4,1,5,5,4\n3,3,6,5,2\n0,7,7,5,9\n";
  for (const int ranks : {1, 3}) {
    const auto outcome =
        train(ranks, {"--data", scratch / "t.csv", "--optimizer", "exact", "--metrics", scratch / "m.jsonl"});
    EXPECT_THAT(outcome.out, ContainsRegex("solved +QR; rank 2 of 4"));
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("note: 2 of 4 features depend on the others: "), HasSubstr("constant")));
    EXPECT_EQ(occurrences(outcome.err, "note:"), 1U);
    EXPECT_TRUE(read_metrics(scratch / "m.jsonl").back()["condition"].is_null());
  }
}

/// Ridge in closed form: one centred feature, w = Σxy / (Σx² + alpha).
TEST(Penalty, IsThatOfScikitLearn) {
  const ScratchFolder scratch;
  std::ofstream(scratch / "t.csv") << "x,y\n1,2\n2,3\n3,7\n6,4\n";  // Σxy = 5, Σx² = 14, about the means 3 and 4
  const double wanted = 5.0 / (14 + 2.5);
  const std::vector<std::string> table{"--data", scratch / "t.csv", "--save", scratch / "m.safetensors"};
  const auto weight_of = [&](std::vector<std::string> options) {
    options.insert(options.end(), table.begin(), table.end());
    train(2, options);
    return double{read_safetensors(scratch / "m.safetensors").at("weight").floats().at(0)};
  };
  EXPECT_NEAR(weight_of({"--optimizer", "exact", "--alpha", "2.5"}), wanted, 1e-7);
  EXPECT_NEAR(weight_of({"--optimizer", "exact", "--l2", "1.25"}), wanted, 1e-7);
  EXPECT_NEAR(
      weight_of({"--alpha", "2.5", "--lr", "0.03", "--momentum", "0.9", "--global-batch", "full", "--epochs", "2000"}),
      wanted, 1e-6);
}

/// The gradient at W = 0: -1/2 · mean of x · (±1), then one step of SGD with C.
TEST(Penalty, OfClassesIsThatOfScikitLearn) {
  const ScratchFolder scratch;
  std::ofstream(scratch / "t.csv") << "x,y\n-2,0\n-1,0\n1,1\n2,1\n0.5,0\n";
  for (const char* option : {"--C", "--l2"}) {
    const std::string value = option == std::string("--C") ? "0.4" : "0.5";  // 1 / (0.4 · 5)
    train(2, {"--data", scratch / "t.csv", "--task", "binary", "--header", "yes", option, value, "--global-batch",
              "full", "--lr", "0.5", "--epochs", "500", "--save", scratch / (std::string(option) + ".safetensors")});
  }
  EXPECT_EQ(read_safetensors(scratch / "--C.safetensors").at("weight").floats(),
            read_safetensors(scratch / "--l2.safetensors").at("weight").floats());
}

/// Newton's optima in long double, as in score_test: in float within 1e-6, with hardly more than an evaluation each
/// iteration.
TEST(Lbfgs, ReachesTheOptima) {
  const std::vector<std::tuple<const char*, const char*, double>> optima{
      {"iris", "multiclass", 0.24367722664938243},
      {"wine", "multiclass", 0.09181973052350331},
      {"digits", "multiclass", 0.26832493049553635},
      {"breast_cancer", "binary", 0.09959137548470548}};
  for (const auto& [name, task, objective] : optima) {
    for (const int ranks : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", name, ranks));
      const ScratchFolder scratch;
      const auto outcome =
          train(ranks, {"--data", data_path(fmt::format("datasets/{}.csv", name)), "--task", task, "--standardize",
                        "--l2", "0.01", "--optimizer", "lbfgs", "--metrics", scratch / "m.jsonl"});
      EXPECT_THAT(outcome.out, ContainsRegex("search +[0-9]+ iterations, [0-9]+ evaluations, gradient .*: converged"));
      const auto end = read_metrics(scratch / "m.jsonl").back();
      EXPECT_NEAR(end["objective"].get<double>(), objective, 1e-6 * objective);
      EXPECT_LE(end["evaluations"].get<int>(), 1.3 * end["steps"].get<int>() + 5);
      EXPECT_EQ(end["converged"], true);
    }
  }
}

TEST(Lbfgs, HasEpochsValidationAndPatience) {
  const ScratchFolder scratch;
  const std::vector<std::string> digits{"--data",
                                        data_path("datasets/digits.csv"),
                                        "--task",
                                        "multiclass",
                                        "--standardize",
                                        "--optimizer",
                                        "lbfgs",
                                        "--metrics",
                                        scratch / "m.jsonl"};
  auto short_run = digits, patient = digits;
  short_run.insert(short_run.end(), {"--epochs", "4"});
  patient.insert(patient.end(), {"--valid", "0.3", "--patience", "5", "--save-best"});
  EXPECT_THAT(train(2, short_run).out, HasSubstr("4 iterations, 5 evaluations"));
  EXPECT_EQ(read_metrics(scratch / "m.jsonl").back()["converged"], false);
  EXPECT_THAT(train(2, patient).out, HasSubstr("ended by --patience"));
  const auto events = read_metrics(scratch / "m.jsonl");
  const auto best = events.back()["best_epoch"].get<std::int64_t>();
  EXPECT_EQ(std::ssize(events), 1 + best + 1 + 5 + 1) << "start, the best, five more, end";
  EXPECT_EQ(events.back()["valid_scores"]["loss"], events.at(static_cast<std::size_t>(best) + 1)["valid_loss"]);
}

TEST(Lbfgs, RefusesStepsOfOthers) {
  const std::string data = data_path("datasets/iris.csv");
  expect_refusal(1, {"--optimizer", "lbfgs"}, 2, HasSubstr("needs --data"));
  expect_refusal(1, {"--data", data, "--optimizer", "lbfgs", "--lr", "1"}, 2, HasSubstr("--lr is not for"));
  expect_refusal(1, {"--data", data, "--optimizer", "lbfgs", "--global-batch", "20"}, 2, HasSubstr("say full"));
}

TEST(Exact, RefusesWhatItCannotHonour) {
  const auto refused = [](std::vector<std::string> more, const std::string& why) {
    expect_refusal(1, exact("diabetes.csv", std::move(more)), 2, HasSubstr(why));
  };
  refused({"--lr", "1"}, "--lr is for steps");
  refused({"--epochs", "5"}, "--epochs is for steps");
  refused({"--device", "cpu"}, "--device is not for --optimizer exact");
  refused({"--loss", "huber"}, "solves least squares");
  refused({"--task", "multiclass"}, "solves least squares");
  refused({"--l2", "1", "--summary"}, "--summary has standard errors");
  refused({"--alpha", "1", "--summary"}, "--summary has standard errors");
  refused({"--alpha", "1", "--l2", "1"}, "--l2 is --C or --alpha");
  refused({"--C", "1"}, "--C is of classes");
  expect_refusal(1, {"--optimizer", "exact"}, 2, HasSubstr("needs --data"));
  expect_refusal(1, {"--data", data_path("datasets/iris.csv"), "--task", "multiclass", "--alpha", "1"}, 2,
                 HasSubstr("--alpha is of least squares"));
  expect_refusal(1, {"--data", data_path("datasets/diabetes.csv"), "--precision", "fp64"}, 2,
                 HasSubstr("--precision fp64 needs --optimizer exact"));
  expect_refusal(1, {"--data", data_path("datasets/diabetes.csv"), "--summary"}, 2,
                 HasSubstr("--summary needs --optimizer exact"));
}

}  // namespace
}  // namespace ddp::test
