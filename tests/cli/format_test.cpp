// The program on the formats of --data: y = 1 + 2a - 3b, whatever the file.
#include <cstring>
#include <iterator>

#include "support/npy_file.hpp"
#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;

/// Gradient descent with rate 0.3 contracts each step; after 2000 of them only float's rounding is left.
void expect_base(const std::vector<std::string>& arguments, int ranks = 2) {
  const ScratchFolder scratch;
  std::vector<std::string> all{"--epochs", "2000",   "--lr",  "0.3",    "--global-batch",
                               "full",     "--init", "zeros", "--save", scratch / "m.safetensors"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  train(ranks, all);
  const auto model = read_safetensors(scratch / "m.safetensors");
  EXPECT_THAT(model.at("bias").floats(), ::testing::ElementsAre(FloatNear(1, 1e-5F)));
  EXPECT_THAT(model.at("weight").floats(), ::testing::ElementsAre(FloatNear(2, 1e-5F), FloatNear(-3, 1e-5F)));
}

TEST(Formats, AllGiveTheSameModel) {
  expect_base({"--data", data_path("cases/P26-deflate.npz")});
  expect_base({"--data", data_path("cases/P32-bf16.safetensors"), "--x", "X", "--y", "y"});
  expect_base({"--data", data_path("cases/P40-one-based.svm")});
  expect_base({"--data", data_path("cases/P40-zero-based.svm"), "--zero-based", "--format", "libsvm"}, 3);
}

/// Trains, and uses the model on the same data; what is read of them is told by `reading`, and by `targets` if needed.
void expect_used(const std::string& data, const std::vector<std::string>& reading = {},
                 const std::vector<std::string>& targets = {}, const std::string& features = {}) {
  SCOPED_TRACE(data);
  const ScratchFolder scratch;
  const std::string model = scratch / "m.safetensors";
  const auto with = [&](std::vector<std::string> arguments, bool reads_targets) {
    arguments.insert(arguments.end(), reading.begin(), reading.end());
    if (reads_targets) arguments.insert(arguments.end(), targets.begin(), targets.end());
    return arguments;
  };
  train(2, with({"--data", data, "--epochs", "2000", "--lr", "0.3", "--global-batch", "full", "--init", "zeros",
                 "--quiet", "--save", model},
                true));
  train(2, with({"evaluate", "--model", model, "--data", data, "--metrics", scratch / "m.jsonl"}, true));
  EXPECT_LT(read_metrics(scratch / "m.jsonl").back()["mse"], 1e-9);
  train(3, with({"predict", "--model", model, "--data", features.empty() ? data : features, "--out", scratch / "p.csv"},
                false));
  std::ifstream file(scratch / "p.csv");
  std::string head;
  std::getline(file, head);
  const std::vector<float> told{std::istream_iterator<float>(file), {}};
  EXPECT_THAT(told, ::testing::Pointwise(FloatNear(1e-4F), std::vector<float>{1, 3, -2, 0, 2, 10, -7, 1.25}));
}

TEST(Formats, AModelIsUsedOnAllOfThem) {
  const ScratchFolder scratch;
  const std::vector<float> x{0, 0, 1, 0, 0, 1, 1, 1, 2, 1, 3, -1, -1, 2, 0.5, 0.25};  // of BASE.csv
  expect_used(data_path("cases/BASE.csv"));
  expect_used(data_path("cases/P26-deflate.npz"));
  expect_used(data_path("cases/P40-one-based.svm"));
  if (LINEAR_DDP_HAS_HDF5) expect_used(data_path("cases/P50-gzip-be.h5"), {}, {"--y", "grp/y"});
  // The targets need not be there to predict.
  StoredFile features;
  features.tensors.push_back(make_f32("X", {8, 2}, x));
  write_safetensors(scratch / "x.safetensors", features);
  expect_used(data_path("cases/P30-good.safetensors"), {}, {}, scratch / "x.safetensors");
  std::string bytes(x.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), x.data(), bytes.size());
  std::ofstream(scratch / "x.npy", std::ios::binary)
      << npy("{'descr': '<f4', 'fortran_order': False, 'shape': (8, 2)}\n", bytes);
  expect_used(scratch / "x.npy", {}, {"--labels", data_path("cases/P25-1d.npy")});
}

TEST(Formats, AGapIsNotFilledWithTheMeanOfAnotherTable) {
  const ScratchFolder scratch;
  const std::string model = scratch / "m.safetensors", table = data_path("cases/BASE.csv"),
                    gaps = data_path("cases/P04-missing.csv");
  train(1, {"--data", table, "--quiet", "--save", model});
  const auto message = AllOf(HasSubstr("--missing mean"), HasSubstr("trained on"));
  for (const char* command : {"evaluate", "predict"}) {
    std::vector<std::string> arguments{command, "--model", model, "--data", gaps, "--missing", "mean"};
    if (command == std::string("predict")) arguments.insert(arguments.end(), {"--out", scratch / "p.csv"});
    expect_refusal(1, arguments, 2, message);
  }
  expect_refusal(1, {"--data", table, "--valid", gaps, "--missing", "mean"}, 2, message);
  train(1, {"--data", gaps, "--valid", "0.3", "--missing", "mean"});
  expect_refusal(1, {"predict", "--model", model, "--data", table, "--out", scratch / "p.csv", "--labels", table}, 2,
                 AllOf(HasSubstr("--labels"), HasSubstr("predict")));
}

TEST(Formats, OptionsForOthersAreRefused) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> wrong{
      {"P20-c.npy", {"--header", "no"}},
      {"P20-c.npy", {"--x", "X"}},
      {"BASE.csv", {"--zero-based"}},
      {"P30-good.safetensors", {"--target", "y"}},
      {"P30-good.safetensors", {"--labels", data_path("cases/P25-1d.npy")}},
      {"P40-one-based.svm", {"--features", "#0"}}};
  for (const auto& [file, options] : wrong) {
    std::vector<std::string> arguments{"--data", data_path("cases/" + file)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    expect_refusal(1, arguments, 2, AllOf(HasSubstr(options[0]), HasSubstr("is for")));
  }
  for (const char* option : {"--x", "--y", "--labels", "--format"}) {
    expect_refusal(1, {option, "npy"}, 2, AllOf(HasSubstr(option), HasSubstr("needs --data")));
  }
  expect_refusal(2, {"--data", data_path("cases/P26-deflate.npz"), "--x", "Z"}, 2,
                 AllOf(HasSubstr("no array 'Z'"), HasSubstr("'X', 'y'")));
}

}  // namespace
}  // namespace ddp::test
