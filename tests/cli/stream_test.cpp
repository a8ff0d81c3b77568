// Features that are read from their file at each use, against the same in memory.
#include <random>

#include "support/npy_file.hpp"
#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// 500 rows of 8 features and a target.
void write_table(const std::string& path) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(3, 2);
  std::vector<float> values(500 * 9);
  for (float& value : values) value = normal(random);
  std::ofstream(path, std::ios::binary) << npy("{'descr': '<f4', 'fortran_order': False, 'shape': (500, 9), }\n",
                                               bytes_of(values));
}

/// All that a training tells of the model, number by number.
std::string told(int ranks, std::vector<std::string> arguments) {
  const ScratchFolder scratch;
  arguments.insert(arguments.end(), {"--metrics", scratch / "m.jsonl"});
  train(ranks, arguments);
  std::string all;
  for (const auto& event : read_metrics(scratch / "m.jsonl")) {
    for (const char* key : {"train_loss", "valid_loss", "valid_scores", "parameters_hash"}) {
      if (event.contains(key)) all += event[key].dump() + " ";
    }
  }
  return all;
}

TEST(Stream, TrainsTheSameModel) {
  const ScratchFolder scratch;
  const std::string table = scratch / "x.npy";
  write_table(table);
  for (const int ranks : {1, 2, 3}) {
    for (const std::string batch : {"64", "full"}) {
      std::vector<std::string> arguments{"--data", table,  "--valid",        "0.2", "--standardize",   "--epochs", "3",
                                         "--lr",   "0.05", "--global-batch", batch, "--evaluate-train"};
      const std::string in_memory = told(ranks, arguments);
      arguments.emplace_back("--stream");
      EXPECT_EQ(told(ranks, arguments), in_memory) << ranks << " ranks, batches of " << batch;
    }
  }
}

TEST(Stream, EvaluatesTheSame) {
  const ScratchFolder scratch;
  const std::string table = scratch / "x.npy";
  write_table(table);
  train(2, {"--data", table, "--stream", "--save", scratch / "m.safetensors"});
  const auto scores = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"evaluate", "--model",   scratch / "m.safetensors", "--data",
                                       table,      "--metrics", scratch / "e.jsonl"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    train(2, arguments);
    return read_metrics(scratch / "e.jsonl").back();
  };
  EXPECT_EQ(scores({"--stream"}), scores({}));
}

TEST(Stream, IsRefusedForTextsAndTellsWhatToDo) {
  expect_refusal(2, {"--data", data_path("cases/BASE.csv"), "--stream"}, 2,
                 AllOf(HasSubstr("BASE.csv: rows of this table cannot be read one by one, and so not streamed"),
                       HasSubstr(".npy")));
}

}  // namespace
}  // namespace ddp::test
