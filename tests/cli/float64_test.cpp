// --optimizer lbfgs --precision fp64 as a user runs it: optima to the rounding of double, and what is saved of them.
#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Float64 : public ::testing::Test {
 protected:
  std::string table(const std::string& name, const std::string& text) const {
    std::ofstream(scratch_ / name) << text;
    return scratch_ / name;
  }

  /// The events of a run.
  std::vector<nlohmann::json> events_of(int ranks, const std::string& data, std::vector<std::string> more) {
    more.insert(more.begin(), {"--data", data, "--optimizer", "lbfgs", "--precision", "fp64", "--save", model_,
                               "--metrics", scratch_ / "m.jsonl"});
    out_ = train(ranks, more).out;
    return read_metrics(scratch_ / "m.jsonl");
  }
  nlohmann::json end_of(int ranks, const std::string& data, std::vector<std::string> more) {
    return events_of(ranks, data, std::move(more)).back();
  }

  ScratchFolder scratch_;
  const std::string model_ = scratch_ / "model.safetensors";
  std::string out_;
};

void expect_relative(double value, double right, double difference) {
  EXPECT_NEAR(value, right, difference * std::abs(right));
}

/// Newton's optima in long double, as in score_test.
TEST_F(Float64, ReachesTheOptima) {
  const std::vector<std::tuple<const char*, const char*, double, double>> optima{
      {"iris", "multiclass", 0.24367722664938243, 0.15326486319453533},
      {"wine", "multiclass", 0.09181973052350331, 0.04453688673665371},
      {"digits", "multiclass", 0.26832493049553635, 0.14134485201424496},
      {"breast_cancer", "binary", 0.09959137548470548, 0.07283328652254488}};
  for (const auto& [name, task, objective, log_loss] : optima) {
    for (const int ranks : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", name, ranks));
      const auto end = end_of(ranks, data_path(fmt::format("datasets/{}.csv", name)),
                              {"--task", task, "--standardize", "--l2", "0.01"});
      EXPECT_THAT(out_, ContainsRegex("search +[0-9]+ iterations, [0-9]+ evaluations, gradient .*: converged"));
      expect_relative(end["objective"], objective, 1e-14);
      expect_relative(end["train_loss"], log_loss, 1e-8);  // it is not flat at the optimum
      EXPECT_LE(end["gradient_norm"].get<double>(), 1e-8);
    }
  }
}

/// Optima without a penalty are the same of raw features: those of iris_binary by Newton's method in long double, those
/// of diabetes in exact arithmetic.
TEST_F(Float64, SavesTheOptimumForRawFeatures) {
  for (const int ranks : {1, 2, 3}) {
    const auto end = end_of(ranks, data_path("datasets/iris_binary.csv"),
                            {"--task", "binary", "--standardize", "--tolerance", "1e-12"});
    expect_relative(end["objective"], 0.059492733956794205, 1e-14);
    const auto stored = read_safetensors(model_);
    EXPECT_EQ(stored.at("weight").dtype, "F64");
    EXPECT_EQ(stored.at("bias").dtype, "F64");
    const std::vector<double> right{-2.465220195186664, -6.680887014078549, 9.429385153926642, 18.286136887850986};
    for (std::size_t i = 0; i < right.size(); ++i) {
      expect_relative(stored.at("weight").doubles().at(i), right[i], 1e-8);
    }
    expect_relative(stored.at("bias").doubles().at(0), -42.63780381302199, 1e-8);
  }
  const auto end = end_of(2, data_path("datasets/diabetes.csv"), {"--standardize"});
  expect_relative(end["train_loss"], 2859.69634758675, 1e-14);
}

/// Weights of rows and classes, which floats do not hold, are so many rows.
TEST_F(Float64, AWeightIsSoManyRows) {
  const std::string rows = "x,w,y\n1,0.1,a\n-1,0.3,b\n2,0.1,b\n3,0.2,a\n-2,0.1,b\n";
  const auto file = table("w.csv", rows), third = table("3.csv", rows + "0.5,0.2,c\n"),
             repeated = table("r.csv", "x,y\n1,a\n-1,b\n-1,b\n-1,b\n2,b\n3,a\n3,a\n-2,b\n");
  for (const int ranks : {1, 2, 3}) {
    const auto one = end_of(ranks, file, {"--task", "binary", "--weights", "w", "--C", "10"});
    expect_relative(one["l2"], 1 / (10 * 0.8), 1e-15);
    const auto other = end_of(ranks, repeated, {"--task", "binary", "--C", "1"});
    expect_relative(one["objective"], other["objective"], 1e-14);
    // Balanced: 5 / (2 · 2) and 5 / (2 · 3), and with the third class 6 / (3 · 2), 6 / (3 · 3), 6 / 3.
    const std::vector<std::string> columns{"--exclude", "w", "--C", "1", "--class-weights"};
    for (const auto& [task, data, weights] : {std::tuple{"binary", file, "1.25,0.83333333333333337"},
                                              std::tuple{"multiclass", third, "1,0.66666666666666663,2"}}) {
      auto balanced = columns, given = columns;
      balanced.insert(balanced.end(), {"balanced", "--task", task});
      given.insert(given.end(), {weights, "--task", task});
      const auto end = end_of(ranks, data, balanced);
      expect_relative(end["objective"], end_of(ranks, data, given)["objective"], 1e-15);
      expect_relative(end["l2"], task == std::string("binary") ? 0.2 : 1.0 / 6, 1e-15);
    }
  }
}

/// A feature that says nothing: the bias learns the smoothed shares q = 0.8 · (3/4, 1/4) + 0.1.
TEST_F(Float64, SmoothedLabelsEndAtTheirEntropy) {
  const auto file = table("s.csv", "x,y\n0,u\n0,u\n0,v\n0,u\n");
  const auto end = end_of(3, file, {"--task", "multiclass", "--label-smoothing", "0.2"});
  expect_relative(end["train_loss"], -0.7 * std::log(0.7) - 0.3 * std::log(0.3), 1e-14);
}

/// Of y = 0, 0, 10 about a bias b the slopes are b, b and -1: b = 1/2.
TEST_F(Float64, HuberLossHasItsMinimum) {
  const auto file = table("h.csv", "x,y\n0,0\n0,0\n0,10\n");
  const auto end = end_of(2, file, {"--loss", "huber"});
  expect_relative(end["train_loss"], (0.125 + 0.125 + 9) / 3, 1e-15);
  EXPECT_THAT(read_safetensors(model_).at("bias").doubles(), ElementsAre(::testing::DoubleNear(0.5, 1e-9)));
}

TEST_F(Float64, GoesOnFromAModel) {
  const std::string iris = data_path("datasets/iris.csv");
  const std::vector<std::string> options{"--task", "multiclass", "--standardize", "--l2", "0.01"};
  const auto first = end_of(2, iris, options);
  auto more = options;
  more.insert(more.end(), {"--init", model_});
  const auto second = end_of(2, iris, more);
  EXPECT_LE(second["steps"].get<int>() + 10, first["steps"].get<int>()) << "it begins there, but for float's rounding";
  expect_relative(second["objective"], first["objective"], 1e-14);
}

TEST_F(Float64, HasEpochsValidationAndPatience) {
  const std::string digits = data_path("datasets/digits.csv");
  const auto short_run = events_of(2, digits, {"--task", "multiclass", "--standardize", "--epochs", "4"});
  EXPECT_THAT(out_, HasSubstr("4 iterations, 5 evaluations"));
  ASSERT_EQ(short_run.size(), 1U + 4 + 1);
  EXPECT_EQ(short_run.back()["converged"], false);
  EXPECT_EQ(short_run.back()["train_loss"], short_run[4]["train_loss"]);
  const auto events =
      events_of(2, digits, {"--task", "multiclass", "--standardize", "--valid", "0.3", "--patience", "5"});
  EXPECT_THAT(out_, HasSubstr("ended by --patience"));
  EXPECT_EQ(std::ssize(events), 1 + events.back()["best_epoch"].get<std::int64_t>() + 1 + 5 + 1);
  EXPECT_EQ(events.back()["valid_scores"]["loss"], events[events.size() - 2]["valid_loss"]);
}

TEST_F(Float64, FeaturesMayStayInTheirFile) {
  const auto in_memory = end_of(2, data_path("cases/P20-c.npy"), {"--l2", "0.1"});
  const auto streamed = end_of(2, data_path("cases/P20-c.npy"), {"--l2", "0.1", "--stream"});
  EXPECT_EQ(streamed["objective"], in_memory["objective"]);
  EXPECT_EQ(streamed["parameters_hash"], in_memory["parameters_hash"]);
}

TEST_F(Float64, RefusesWhatItCannotHonour) {
  const auto refused = [](std::vector<std::string> more, const std::string& why) {
    more.insert(more.end(), {"--data", data_path("cases/BASE.csv"), "--precision", "fp64"});
    expect_refusal(1, more, 2, HasSubstr(why));
  };
  refused({"--optimizer", "sgd"}, "--precision fp64 needs --optimizer exact or lbfgs");
  refused({"--optimizer", "lbfgs", "--device", "cuda"}, "--device cuda is not for --precision fp64");
  refused({"--optimizer", "lbfgs", "--backend", "nccl"}, "--backend nccl does not go with --device cpu");
  refused({"--optimizer", "lbfgs", "--l2-path", "1,2", "--folds", "2"}, "--l2-path with --optimizer lbfgs");
  refused({"--optimizer", "lbfgs", "--valid", "0.5", "--save-best"}, "--save-best keeps float parameters");
}

}  // namespace
}  // namespace ddp::test
