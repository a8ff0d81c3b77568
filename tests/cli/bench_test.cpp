// What `linear_ddp bench` tells, and refuses. Times are never asserted.
#include <cmath>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Its lines of JSON.
std::vector<nlohmann::json> bench(int ranks, std::vector<std::string> arguments) {
  const ScratchFolder scratch;
  arguments.insert(arguments.begin(), "bench");
  arguments.insert(arguments.end(), {"--rounds", "2", "--json", scratch / "bench.jsonl"});
  const Outcome outcome = train(ranks, arguments);
  EXPECT_EQ(outcome.err, "");
  return read_metrics(scratch / "bench.jsonl");
}

void expect_sound(const nlohmann::json& row, int ranks) {
  EXPECT_EQ(row["event"], "bench");
  EXPECT_EQ(row["world_size"], ranks);
  for (const char* name :
       {"steps_per_s", "rows_per_s", "step_us", "backward_us", "all_reduce_us", "update_us", "products_us", "sum_us",
        "copy_us", "ratio", "backward_share", "all_reduce_share", "update_share"}) {
    ASSERT_TRUE(row[name].is_number()) << name << " of " << row;
    EXPECT_GT(row[name], 0) << name;
  }
  EXPECT_EQ(row["launch_us"].is_null(), row["device"] == "cpu");
  const double step_us = row["step_us"], rows = row["rows"];
  EXPECT_NEAR(row["steps_per_s"].get<double>() * step_us, 1e6, 1);
  EXPECT_NEAR(row["rows_per_s"].get<double>() * step_us / (1e6 * rows * ranks), 1, 1e-9);
  EXPECT_NEAR(row["backward_share"].get<double>() * step_us / row["backward_us"].get<double>(), 1, 1e-9);
  if (ranks == 1) {
    EXPECT_TRUE(row["overlap"].is_null());
    EXPECT_EQ(row["wire_bytes"], 0);
  } else {
    EXPECT_GE(row["overlap"], 0);
    EXPECT_LE(row["overlap"], 1);
    EXPECT_EQ(row["wire_bytes"], 2 * row["reduced_bytes"].get<int>() * (ranks - 1) / ranks);
  }
}

TEST(Bench, TellsAllOfAStep) {
  for (const int ranks : {1, 2, 3}) {
    const auto rows = bench(ranks, {"--in", "12", "--out", "5", "--batch-size", "7"});
    ASSERT_EQ(rows.size(), 1U);
    expect_sound(rows[0], ranks);
    EXPECT_EQ(rows[0]["rows"], 7);
    EXPECT_EQ(rows[0]["layers"], (std::vector<int>{12, 5}));
    EXPECT_EQ(rows[0]["parameters"], 65);
    EXPECT_EQ(rows[0]["loss"], "mse");
    EXPECT_EQ(rows[0]["optimizer"], "sgd");
    EXPECT_EQ(rows[0]["rounds"], 2);
    EXPECT_TRUE(rows[0]["activation"].is_null());
  }
}

TEST(Bench, HasEveryLossOptimizerAndHook) {
  const std::vector<std::vector<std::string>> kinds{
      {"--hidden", "9,6", "--activation", "gelu", "--optimizer", "adam", "--bucket-cap-mb", "0.0001"},
      {"--loss", "cross-entropy", "--optimizer", "adamw", "--compress", "bf16"},
      {"--loss", "bce", "--compress", "fp16"},
      {"--loss", "huber", "--in", "40", "--out", "30", "--compress", "powersgd:2"}};
  for (auto kind : kinds) {
    kind.insert(kind.end(), {"--batch-size", "8"});
    const auto rows = bench(2, kind);
    ASSERT_EQ(rows.size(), 1U);
    expect_sound(rows[0], 2);
  }
}

/// Of a gradient in whole, and of one in halves with the loss as it is; of PowerSGD P [30, 2], Q [40, 2], bias and
/// loss.
TEST(Bench, CountsTheBytesThatAreReduced) {
  const auto bytes = [](std::vector<std::string> options) {
    options.insert(options.end(), {"--in", "40", "--out", "30"});
    return bench(2, options).at(0)["reduced_bytes"].get<int>();
  };
  // A bias fills whole 16 bytes, and with the loss goes a request to stop.
  constexpr int weights = 40 * 30, bias = 32, loss = 2;
  EXPECT_EQ(bytes({}), 4 * (weights + bias + loss));
  EXPECT_EQ(bytes({"--compress", "fp16"}), 2 * (weights + bias) + 4 * loss);
  EXPECT_EQ(bytes({"--compress", "powersgd:2"}), 4 * (30 * 2 + 40 * 2 + 30 + loss));
}

TEST(Bench, WithoutAShapeGoesThroughSeveralAndPrintsATable) {
  const ScratchFolder scratch;
  const Outcome outcome = train(2, {"bench", "--rounds", "1", "--json", scratch / "b"});
  const auto rows = read_metrics(scratch / "b");
  ASSERT_EQ(rows.size(), 5U);
  for (const auto& row : rows) expect_sound(row, 2);
  for (const char* column : {"layers", "step", "steps/s", "rows/s", "backward", "all-reduce", "update", "overlap",
                             "products", "sum", "copy", "launch", "step/limit", "wire"}) {
    EXPECT_THAT(outcome.out, HasSubstr(column));
  }
  for (const char* layers : {"10-10", "256-256", "1024-1024", "256-1", "256-512-512-512-10"}) {
    EXPECT_THAT(outcome.out, HasSubstr(std::string(" ") + layers + " "));
  }
  EXPECT_EQ(rows[3]["rows"], 100'000);
  EXPECT_EQ(rows[4]["activation"], "relu");
}

TEST(Bench, QuietSaysNothing) {
  EXPECT_EQ(train(2, {"bench", "--in", "3", "--rounds", "1", "--quiet"}).out, "");
}

TEST(Bench, Refusals) {
  const std::vector<std::vector<std::string>> wrong{
      {"--rounds: '0' is no whole number", "--rounds", "0"},
      {"--in: 'x' is no whole number", "--in", "x"},
      {"--batch-size: '0' is no whole number", "--batch-size", "0"},
      {"accepted: sgd, adam, adamw", "--optimizer", "lbfgs"},
      {"accepted: mse, huber, bce, cross-entropy", "--loss", "mae"},
      {"--activation needs --hidden", "--activation", "tanh"},
      {"leave out START", "--compress", "powersgd:1:5"},
      {"--backend nccl does not go with --device cpu", "--device", "cpu", "--backend", "nccl"},
      {"unknown option '--steps'", "--steps", "3"},
      {"did you mean --rounds?", "--round", "3"},
      {"--json: its value is empty", "--json", ""},
      {"the inputs of a batch: 4611686018427387904 times 10 is more", "--batch-size", "4611686018427387904"}};
  for (const auto& arguments : wrong) {
    std::vector<std::string> all{"bench"};
    all.insert(all.end(), arguments.begin() + 1, arguments.end());
    expect_refusal(1, all, 2, HasSubstr(arguments[0]));
  }
  expect_refusal(2, {"bench", "--rounds", "-1"}, 2, HasSubstr("--rounds"));
  expect_refusal(2, {"bench", "--json", "/proc/none/b.jsonl"}, 1, AllOf(HasSubstr("--json"), HasSubstr("/proc/none")));
}

TEST(Bench, HelpHasAnExample) {
  EXPECT_THAT(train(1, {"bench", "--help"}).out,
              AllOf(HasSubstr("mpirun -np 2 linear_ddp bench --in"), HasSubstr("--rounds"), HasSubstr("step/limit")));
}

}  // namespace
}  // namespace ddp::test
