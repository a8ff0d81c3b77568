// The program on the formats of --data: y = 1 + 2a - 3b, whatever the file.
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

TEST(Formats, QueriesAreIgnoredWithOneNotice) {
  const auto outcome = train(3, {"--data", data_path("cases/P42-qid-comment.svm")});
  EXPECT_EQ(occurrences(outcome.err, "qid:"), 1U) << outcome.err;
}

TEST(Formats, AFeatureOfOneRankIsOneOfAll) {
  const ScratchFolder scratch;
  train(4, {"--data", data_path("cases/D11-rank-columns.svm"), "--no-bias", "--init", "zeros", "--epochs", "20000",
            "--lr", "0.2", "--global-batch", "full", "--save", scratch / "m.safetensors"});
  const auto weight = read_safetensors(scratch / "m.safetensors").at("weight").floats();
  EXPECT_THAT(weight, ::testing::ElementsAre(FloatNear(1, 1e-5F), 0.0F, FloatNear(2, 1e-5F)));
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
