// What is minimised, and by which steps: each option against a closed form, or against the same thing said otherwise.
#include <cmath>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

struct Trained {
  std::vector<double> losses, rates;  ///< of the steps, or of the epochs
  nlohmann::json end;
  std::vector<float> weight, bias;
};

class Objective : public ::testing::Test {
 protected:
  std::string table(const std::string& name, const std::string& text) const {
    std::ofstream(scratch_ / name) << text;
    return scratch_ / name;
  }

  Trained trained(int ranks, std::vector<std::string> arguments, const char* event = "step") const {
    arguments.insert(arguments.end(), {"--init", "zeros", "--no-shuffle", "--evaluate-train", "--quiet", "--save",
                                       scratch_ / "m.safetensors", "--metrics", scratch_ / "m.jsonl"});
    train(ranks, arguments);
    Trained result;
    for (const auto& line : read_metrics(scratch_ / "m.jsonl")) {
      if (line["event"] == event) {
        result.losses.push_back(line[std::string(event) == "step" ? "loss" : "train_loss"]);
        result.rates.push_back(line["lr"]);
      }
      result.end = line;
    }
    const auto model = read_safetensors(scratch_ / "m.safetensors");
    result.weight = model.at("weight").floats();
    for (const auto& tensor : model.tensors) {
      if (tensor.name == "bias") result.bias = tensor.floats();
    }
    return result;
  }

  ScratchFolder scratch_;
  const std::string base_ = data_path("cases/BASE.csv");
};

TEST_F(Objective, SchedulesGoOnFromStepToStep) {
  const std::vector<std::string> six{"--data", base_, "--global-batch", "4", "--steps", "6", "--lr", "0.25"};
  const auto rates = [&](const char* schedule) {
    auto arguments = six;
    arguments.insert(arguments.end(), {"--schedule", schedule});
    return trained(2, arguments).rates;
  };
  EXPECT_THAT(rates("step:2:0.5"), ElementsAre(0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625));
  EXPECT_THAT(rates("linear:0.5:1:2"), ElementsAre(0.125, 0.1875, 0.25, 0.25, 0.25, 0.25));
  // Without a number of steps, over all of them: cos of 0, 30, 60, … degrees.
  const double r = std::sqrt(3.0) / 2;
  EXPECT_THAT(rates("cosine"),
              Pointwise(DoubleNear(1e-15), {0.25, 0.125 * (1 + r), 0.125 * 1.5, 0.125, 0.125 * 0.5, 0.125 * (1 - r)}));
}

TEST_F(Objective, BatchesThatAreTakenTogetherAreALargerBatch) {
  // 8 rows: steps of 3 · 2 rows and, at the end of the epoch, of the 2 that are left.
  const std::vector<std::string> common{"--data", base_, "--lr", "0.1", "--epochs", "3"};
  auto larger = common, together = common;
  larger.insert(larger.end(), {"--global-batch", "6", "--steps", "6"});
  together.insert(together.end(), {"--global-batch", "2", "--accumulate", "3", "--steps", "6"});
  const auto expected = trained(1, larger);
  ASSERT_EQ(expected.losses.size(), 6U);
  for (const int ranks : {1, 2, 3}) {
    const auto actual = trained(ranks, together);
    EXPECT_THAT(actual.losses, Pointwise(DoubleNear(1e-5), expected.losses)) << ranks;  // losses of about 10, in float
    EXPECT_THAT(actual.weight, Pointwise(::testing::FloatNear(1e-6F), expected.weight)) << ranks;
  }
}

TEST_F(Objective, AWeightIsSoManyRows) {
  const std::string weighted = table("w.csv", "a,w,y\n1,2,3\n2,1,1\n-1,0,9\n0.5,3,2\n"),
                    repeated = table("r.csv", "a,y\n1,3\n1,3\n2,1\n0.5,2\n0.5,2\n0.5,2\n");
  const std::vector<std::string> common{"--target", "y", "--lr", "0.1", "--epochs", "50", "--global-batch", "full"};
  auto one = common, other = common;
  one.insert(one.end(), {"--data", weighted, "--weights", "w"});
  other.insert(other.end(), {"--data", repeated});
  const auto expected = trained(1, other, "epoch");
  for (const int ranks : {1, 2, 3}) {
    const auto actual = trained(ranks, one, "epoch");
    EXPECT_THAT(actual.losses, Pointwise(DoubleNear(1e-5), expected.losses)) << ranks;
    EXPECT_NEAR(actual.end["train_scores"]["r2"], expected.end["train_scores"]["r2"], 1e-5);
  }
  // In batches too the ranks' number is no input: each is divided by all of its weights.
  auto batches = common;
  batches.insert(batches.end(), {"--data", weighted, "--weights", "w", "--steps", "8"});
  batches[7] = "2";
  const auto alone = trained(1, batches);
  for (const int ranks : {2, 3}) {
    EXPECT_THAT(trained(ranks, batches).losses, Pointwise(DoubleNear(1e-5), alone.losses)) << ranks;
  }
}

TEST_F(Objective, AClassIsWorthItsWeight) {
  // Of three classes, and of two: the same as weights of the rows, one for each class's rows.
  const std::string rows = "a,w,y\n1,0.5,x\n2,0.5,x\n-1,2,z\n0,0.5,x\n3,1,y\n";
  const std::string three = table("3.csv", rows), two = table("2.csv", rows.substr(0, rows.size() - 6));
  for (const auto& [task, file, weights] :
       {std::tuple{"multiclass", three, "0.5,1,2"}, std::tuple{"binary", two, "0.5,2"}}) {
    const std::vector<std::string> common{"--task",   task, "--target",       "y",    "--lr",   "0.5",
                                          "--epochs", "30", "--global-batch", "full", "--data", file};
    auto by_row = common, by_class = common, balanced = common;
    by_row.insert(by_row.end(), {"--weights", "w"});
    by_class.insert(by_class.end(), {"--exclude", "w", "--class-weights", weights});
    const auto expected = trained(1, by_row, "epoch");
    for (const int ranks : {1, 2}) {
      EXPECT_THAT(trained(ranks, by_class, "epoch").losses, Pointwise(DoubleNear(1e-6), expected.losses)) << task;
    }
    // Rows over classes and own rows: 4 / (2 · 3) and 4 / (2 · 1), or 5 / (3 · 3), 5 / 3 and 5 / 3.
    balanced.insert(balanced.end(), {"--exclude", "w", "--class-weights", "balanced"});
    by_class.back() = std::string(task) == "binary" ? "1,3" : "1,3,3";
    EXPECT_THAT(trained(2, balanced, "epoch").losses, Pointwise(DoubleNear(1e-6), trained(2, by_class, "epoch").losses))
        << task;
  }
}

TEST_F(Objective, SmoothedLabelsEndAtTheirEntropy) {
  // A feature that says nothing: the bias learns the smoothed shares q = 0.8 · (3/4, 1/4) + 0.1.
  const std::string file = table("s.csv", "a,y\n0,u\n0,u\n0,v\n0,u\n");
  const auto result = trained(2, {"--data", file, "--task", "multiclass", "--label-smoothing", "0.2", "--lr", "1",
                                  "--epochs", "500", "--global-batch", "full"});
  const double entropy = -0.7 * std::log(0.7) - 0.3 * std::log(0.3);
  EXPECT_NEAR(result.end["train_loss"], entropy, 1e-6);
}

TEST_F(Objective, ThePenaltyIsThatOfRidgeRegression) {
  // Of y = w x on (1, 2), (2, 1): w = 2 Σxy / (2 Σx² + n l2) = 8 / (10 + 2 · 0.5).
  const std::string file = table("l.csv", "x,y\n1,2\n2,1\n");
  const double w = 8.0 / 11, loss = ((2 - w) * (2 - w) + (1 - 2 * w) * (1 - 2 * w)) / 2;
  for (const char* optimizer : {"sgd", "adam"}) {
    const auto result = trained(2, {"--data", file, "--no-bias", "--l2", "0.5", "--optimizer", optimizer, "--lr",
                                    "0.02", "--epochs", "3000", "--global-batch", "full"});
    EXPECT_NEAR(static_cast<double>(result.weight.at(0)), w, 1e-5) << optimizer;
    EXPECT_NEAR(result.end["train_loss"], loss, 1e-5);
    EXPECT_NEAR(result.end["objective"], loss + 0.25 * w * w, 1e-5);
  }
}

TEST_F(Objective, FirstStepsAreAsLongAsTheyMayBe) {
  const std::vector<std::string> one_step{"--data", base_, "--global-batch", "full", "--steps", "1"};
  auto clipped = one_step, adam = one_step, decayed = one_step;
  clipped.insert(clipped.end(), {"--lr", "1", "--clip-grad-norm", "0.25"});
  const auto step = trained(2, clipped);
  double square_sum = 0;
  for (const auto& values : {step.weight, step.bias}) {
    for (const float value : values) square_sum += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(std::sqrt(square_sum), 0.25, 1e-6);
  // Adam's first step is the rate against the gradient's sign: at zero it is (-, +) for a, b and - for the bias
  // (case D08 of the cases).
  adam.insert(adam.end(), {"--optimizer", "adamw", "--lr", "0.01"});
  const auto first = trained(2, adam);
  EXPECT_THAT(first.weight, Pointwise(::testing::FloatNear(1e-8F), {0.01F, -0.01F}));
  EXPECT_THAT(first.bias, Pointwise(::testing::FloatNear(1e-8F), {0.01F}));
}

TEST_F(Objective, SeveralTargetsReachTheirLeastSquares) {
  // The mean of the three's optimal MSEs, 423.97735, 4.4040027 and 45.692121, by exact least squares (the data's
  // README).
  constexpr double linnerud_mse = 158.0244913155757;
  for (const int ranks : {1, 2, 3}) {
    const auto result =
        trained(ranks,
                {"--data", data_path("datasets/linnerud.csv"), "--target", "Weight,Waist,Pulse", "--standardize",
                 "--global-batch", "full", "--epochs", "2000", "--lr", "0.5", "--momentum", "0.9"},
                "epoch");
    EXPECT_NEAR(result.end["train_loss"], linnerud_mse, 1e-5 * linnerud_mse) << ranks;
  }
}

}  // namespace
}  // namespace ddp::test
