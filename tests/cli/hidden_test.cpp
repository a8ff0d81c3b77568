// Hidden layers from the command line: trained, saved, used.
#include <cmath>
#include <fstream>
#include <sstream>

#include <linear_ddp/nn/activation.hpp>
#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> on_iris(std::vector<std::string> rest) {
  rest.insert(rest.begin(), {"--data", data_path("datasets/iris.csv"), "--task", "multiclass"});
  return rest;
}

/// Numbers of a table of this many columns, but for its first line and the fields that are none.
std::vector<std::vector<double>> numbers_of(const std::string& path) {
  std::vector<std::vector<double>> rows;
  std::ifstream file(path);
  std::string line, field;
  for (std::getline(file, line); std::getline(file, line);) {
    std::stringstream fields(line);
    auto& row = rows.emplace_back();
    while (std::getline(fields, field, ',')) {
      char* end = nullptr;
      const double value = std::strtod(field.c_str(), &end);
      if (end == field.c_str() + field.size()) row.push_back(value);
    }
  }
  return rows;
}

std::vector<double> apply(const StoredFile& model, const std::string& layer, const std::vector<double>& x) {
  const auto weight = model.at(layer + ".weight").floats(), bias = model.at(layer + ".bias").floats();
  std::vector<double> y(bias.begin(), bias.end());
  for (std::size_t o = 0; o < y.size(); ++o) {
    for (std::size_t i = 0; i < x.size(); ++i) y[o] += static_cast<double>(weight[o * x.size() + i]) * x[i];
  }
  return y;
}

TEST(Stack, TrainsTheSameOnAnyNumberOfRanksAndPredictsAsItsFileSays) {
  const ScratchFolder scratch;
  double loss = 0;
  for (const int ranks : {1, 2, 3}) {
    const std::string path = scratch / "m.safetensors";
    train(ranks, on_iris({"--hidden", "8,5", "--activation", "tanh", "--standardize", "--optimizer", "adam", "--lr",
                          "0.02", "--global-batch", "32", "--epochs", "30", "--evaluate-train", "--save", path,
                          "--metrics", scratch / "m.jsonl"}));
    const auto end = read_metrics(scratch / "m.jsonl").back();
    if (ranks == 1) loss = end["train_loss"];
    EXPECT_NEAR(static_cast<double>(end["train_loss"]) / loss, 1, 1e-4);
    EXPECT_GT(end["train_scores"]["accuracy"], 0.95);
  }
  const StoredFile model = read_safetensors(scratch / "m.safetensors");
  EXPECT_EQ(model.metadata.at("activation"), "tanh");
  EXPECT_EQ(model.tensors.size(), 6U);

  EXPECT_THAT(train(2, {"evaluate", "--model", scratch / "m.safetensors", "--data", data_path("datasets/iris.csv"),
                        "--metrics", scratch / "e.jsonl"})
                  .out,
              HasSubstr("Linear(4 -> 8), tanh, Linear(8 -> 5), tanh, Linear(5 -> 3), multiclass"));
  EXPECT_NEAR(static_cast<double>(read_metrics(scratch / "e.jsonl").back()["loss"]) / loss, 1, 1e-4);

  train(2, {"predict", "--model", scratch / "m.safetensors", "--data", data_path("datasets/iris.csv"), "--out",
            scratch / "p.csv", "--probabilities"});
  const auto features = numbers_of(data_path("datasets/iris.csv")), told = numbers_of(scratch / "p.csv");
  ASSERT_EQ(told.size(), features.size());
  for (std::size_t row = 0; row < told.size(); row += 7) {
    std::vector<double> y{features[row].begin(), features[row].begin() + 4};
    for (const std::string layer : {"0", "2", "4"}) {
      y = apply(model, layer, y);
      if (layer != "4") activate(Activation::tanh, y);
    }
    const double sum = std::exp(y[0]) + std::exp(y[1]) + std::exp(y[2]);
    const auto probabilities = std::vector<double>(told[row].end() - 3, told[row].end());
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(probabilities[k], std::exp(y[k]) / sum, 1e-6) << row;
  }
}

TEST(Stack, GoesOnFromItsFile) {
  const ScratchFolder scratch;
  const auto part = [&](const std::string& init, const std::string& save) {
    train(2, on_iris({"--hidden", "6", "--activation", "gelu", "--standardize", "--lr", "0.1", "--global-batch", "full",
                      "--epochs", "20", "--no-shuffle", "--init", init, "--save", scratch / save, "--metrics",
                      scratch / "m.jsonl"}));
    return static_cast<double>(read_metrics(scratch / "m.jsonl").back()["train_loss"]);
  };
  part("torch", "half");
  const double two_halves = part(scratch / "half", "whole");
  train(2, on_iris({"--hidden", "6", "--activation", "gelu", "--standardize", "--lr", "0.1", "--global-batch", "full",
                    "--epochs", "40", "--no-shuffle", "--metrics", scratch / "m.jsonl"}));
  EXPECT_NEAR(two_halves / static_cast<double>(read_metrics(scratch / "m.jsonl").back()["train_loss"]), 1, 1e-5);
}

TEST(Compression, CostsLittleOfTheLossAndIsTold) {
  const ScratchFolder scratch;
  const auto loss = [&](const std::string& how) {
    const auto outcome =
        train(2, on_iris({"--hidden", "16", "--standardize", "--optimizer", "adam", "--lr", "0.01", "--global-batch",
                          "30", "--epochs", "20", "--compress", how, "--first-bucket-mb", "0.0001", "--evaluate-train",
                          "--metrics", scratch / "m.jsonl"}));
    const auto events = read_metrics(scratch / "m.jsonl");
    EXPECT_EQ(events.front()["compress"], how);
    EXPECT_EQ(occurrences(outcome.err, "begins after 1000 steps, and there are only 100"), how == "powersgd" ? 1U : 0U);
    return static_cast<double>(events.back()["train_loss"]);
  };
  const double plain = loss("none");
  EXPECT_NE(loss("fp16"), plain);
  EXPECT_NEAR(loss("fp16") / plain, 1, 1e-2);
  EXPECT_NEAR(loss("bf16") / plain, 1, 1e-1);
  EXPECT_EQ(loss("powersgd"), plain);  // it did not begin
  EXPECT_NE(loss("powersgd:1:10"), plain);
  EXPECT_NEAR(loss("powersgd:1:10") / plain, 1, 0.3);
}

TEST(Compression, Refusals) {
  expect_refusal(1, {"--compress", "int8"}, 2, HasSubstr("accepted: none, fp16, bf16, powersgd"));
  expect_refusal(1, {"--compress", "fp16:2"}, 2, HasSubstr("is not of the form"));
  expect_refusal(1, {"--compress", "powersgd:0"}, 2, HasSubstr("'0' is no whole number"));
  expect_refusal(1, on_iris({"--optimizer", "lbfgs", "--compress", "fp16"}), 2, HasSubstr("--compress is not for"));
  expect_refusal(1, on_iris({"--sweep", "lr=1,2", "--compress", "powersgd"}), 2, HasSubstr("use fp16 or bf16"));
}

TEST(Stack, Refusals) {
  const ScratchFolder scratch;
  train(1, on_iris({"--hidden", "6", "--epochs", "1", "--save", scratch / "stack"}));
  train(1, on_iris({"--epochs", "1", "--save", scratch / "single"}));
  expect_refusal(1, {"--hidden", "4,0"}, 2, HasSubstr("--hidden: '0' is no whole number from 1"));
  expect_refusal(1, {"--activation", "tanh"}, 2, HasSubstr("--activation needs --hidden"));
  expect_refusal(1, {"--hidden", "4", "--activation", "silu"}, 2, HasSubstr("accepted: relu, gelu, tanh"));
  for (const std::string optimizer : {"lbfgs", "exact"}) {
    expect_refusal(1, {"--data", data_path("datasets/linnerud.csv"), "--hidden", "4", "--optimizer", optimizer}, 2,
                   HasSubstr("--hidden is for sgd, adam and adamw"));
  }
  expect_refusal(1, on_iris({"--hidden", "4", "--sweep", "lr=1,2"}), 2, HasSubstr("--sweep trains single layers"));
  expect_refusal(2, on_iris({"--hidden", "5", "--init", scratch / "stack"}), 2,
                 HasSubstr("0.weight has shape [6, 4], the model needs [5, 4]"));
  expect_refusal(2, on_iris({"--init", scratch / "stack"}), 2, HasSubstr("holds a tensor '0."));
  expect_refusal(2, on_iris({"--hidden", "6", "--init", scratch / "single"}), 2, HasSubstr("holds a tensor '"));

  // As torch.save of a Sequential's state_dict leaves it: without a word of what is between the layers.
  StoredFile foreign = read_safetensors(scratch / "stack");
  const auto use = [&] {
    write_safetensors(scratch / "foreign", foreign);
    return std::vector<std::string>{"evaluate", "--model", scratch / "foreign", "--data",
                                    data_path("datasets/iris.csv")};
  };
  foreign.metadata.erase("activation");
  expect_refusal(2, use(), 2, AllOf(HasSubstr("has 2 layers"), HasSubstr("\"activation\" (relu, gelu or tanh)")));
  foreign.metadata["activation"] = "relu";
  foreign.tensors.pop_back();
  expect_refusal(2, use(), 2, HasSubstr("holds 3 tensors for 2 layers"));
  foreign.tensors.push_back(foreign.tensors[1]);
  foreign.tensors.back().name = "00.bias";
  expect_refusal(2, use(), 2, HasSubstr("2.bias"));
}

}  // namespace
}  // namespace ddp::test
