// What trained models are worth: data sets whose optima are known, and the commands evaluate and predict.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

/// The last event of a run with --metrics.
nlohmann::json end_of(int ranks, std::vector<std::string> arguments) {
  const ScratchFolder scratch;
  arguments.insert(arguments.end(), {"--metrics", scratch / "m.jsonl", "--quiet"});
  train(ranks, arguments);
  return read_metrics(scratch / "m.jsonl").back();
}

struct Optimum {
  const char *file, *task;
  double objective, log_loss;
  int right, rows;
  std::vector<std::string> options;
};

TEST(Optimum, OfEachDataSetIsReached) {
  const std::vector<std::string> penalty{"--l2", "0.01", "--lr", "0.3", "--momentum", "0.95", "--epochs", "1000"};
  // Without a penalty the loss has a long flat valley.
  const std::vector<std::string> none{"--lr", "1", "--momentum", "0.995", "--epochs", "10000"};
  const std::vector<Optimum> optima{
      {"iris", "multiclass", 0.24367722664938243, 0.15326486319453533, 144, 150, penalty},
      {"wine", "multiclass", 0.09181973052350331, 0.04453688673665371, 178, 178, penalty},
      {"digits", "multiclass", 0.26832493049553635, 0.14134485201424496, 1765, 1797, penalty},
      {"breast_cancer", "binary", 0.09959137548470548, 0.07283328652254488, 561, 569, penalty},
      {"iris_binary", "binary", 0.059492733956794205, 0.059492733956794205, 98, 100, none}};
  for (const auto& one : optima) {
    const bool small = one.rows < 1000;
    for (const int ranks : small ? std::vector{1, 3} : std::vector{2}) {
      const ScratchFolder scratch;
      std::vector<std::string> arguments{"--data",        data_path(fmt::format("datasets/{}.csv", one.file)),
                                         "--task",        one.task,
                                         "--standardize", "--global-batch",
                                         "full",          "--evaluate-train",
                                         "--init",        "zeros",
                                         "--save",        scratch / "m.safetensors"};
      arguments.insert(arguments.end(), one.options.begin(), one.options.end());
      const auto end = end_of(ranks, arguments);
      const std::string shown = fmt::format("{} on {} ranks", one.file, ranks);
      EXPECT_NEAR(end["objective"], one.objective, 1e-5 * one.objective) << shown;
      // The objective is flat at its optimum: its parts differ by the root of that.
      EXPECT_NEAR(end["train_scores"]["log_loss"], one.log_loss, 5e-3 * one.log_loss) << shown;
      EXPECT_NEAR(end["train_scores"]["accuracy"], double(one.right) / one.rows, 1e-12) << shown;
      const auto evaluated = end_of(ranks, {"evaluate", "--model", scratch / "m.safetensors", "--data",
                                            data_path(fmt::format("datasets/{}.csv", one.file)), "--confusion"});
      EXPECT_NEAR(evaluated["accuracy"], double(one.right) / one.rows, 1e-12) << shown;
      EXPECT_NEAR(evaluated["log_loss"], end["train_scores"]["log_loss"], 1e-5) << shown;  // weights folded as float
      int right = 0, rows = 0;
      for (std::size_t i = 0; i < evaluated["classes"].size(); ++i) {
        right += evaluated["confusion"][i][i].get<int>();
        for (const int count : evaluated["confusion"][i]) rows += count;
      }
      EXPECT_EQ(right, one.right) << shown;
      EXPECT_EQ(rows, one.rows) << shown;
    }
  }
}

TEST(Optimum, OfDiabetesHasItsR2) {
  const ScratchFolder scratch;
  train(2, {"--data", data_path("datasets/diabetes.csv"), "--target", "target", "--standardize", "--global-batch",
            "full", "--epochs", "5000", "--lr", "0.1", "--momentum", "0.9", "--save", scratch / "m.safetensors"});
  for (const int ranks : {1, 3}) {
    const auto scores =
        end_of(ranks, {"evaluate", "--model", scratch / "m.safetensors", "--data", data_path("datasets/diabetes.csv")});
    EXPECT_NEAR(scores["r2"], 0.5177484222203499, 1e-6) << ranks;
    EXPECT_NEAR(scores["mse"], 2859.69634758675, 3e-3) << ranks;
    EXPECT_NEAR(scores["rmse"], std::sqrt(2859.69634758675), 3e-5) << ranks;
  }
}

class Predict : public ::testing::Test {
 protected:
  std::string path(const std::string& name) { return scratch_ / name; }
  std::string predicted(int ranks, std::vector<std::string> arguments, const std::string& out = "p.csv") {
    arguments.insert(arguments.begin(), {"predict"});
    arguments.insert(arguments.end(), {"--out", path(out)});
    train(ranks, arguments);
    return file_bytes(path(out));
  }
  void save_linear(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& weight,
                   const std::vector<float>& bias) {
    StoredFile file;
    const std::int64_t outputs = shape[0];
    file.tensors = {make_f32("weight", std::move(shape), weight), make_f32("bias", {outputs}, bias)};
    write_safetensors(path(name), file);
  }

  ScratchFolder scratch_;
};

TEST_F(Predict, AnArrayOfPyTorchsParametersByPosition) {
  save_linear("torch.safetensors", {1, 2}, {2, -3}, {1});
  write_file(path("x.csv"), "a,b\n1,0\n0,1\n0.5,0.25\n");
  for (const int ranks : {1, 2, 3}) {
    const std::string csv = predicted(ranks, {"--model", path("torch.safetensors"), "--data", path("x.csv")});
    EXPECT_EQ(csv, "prediction\n3\n-2\n1.25\n") << ranks;
  }
  const std::string npy = predicted(2, {"--model", path("torch.safetensors"), "--data", path("x.csv")}, "p.npy");
  ASSERT_EQ(npy.size(), 128U + 3 * 4);
  EXPECT_EQ(npy.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_THAT(npy, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }"));
  float last = 0;
  std::memcpy(&last, npy.data() + npy.size() - 4, 4);
  EXPECT_EQ(last, 1.25F);
  expect_refusal(2,
                 {"predict", "--model", path("torch.safetensors"), "--data", data_path("datasets/iris.csv"), "--out",
                  path("q.csv")},
                 2, AllOf(HasSubstr("2 features"), HasSubstr("the table 5")));
  EXPECT_FALSE(std::filesystem::exists(path("q.csv")));
}

TEST_F(Predict, ClassesByNameInAnyOrderOfColumns) {
  write_file(path("train.csv"), "size,colour,kind\n-2,0,cat\n-1,1,cat\n1,0,dog\n2,1,\"d,og\"\n2,0,\"d,og\"\n");
  train(2, {"--data", path("train.csv"), "--task", "multiclass", "--init", "zeros", "--lr", "0.5", "--epochs", "500",
            "--global-batch", "full", "--save", path("m.safetensors")});
  write_file(path("new.csv"), "colour,size\n0,-2\n1,3\n0,-3\n");  // without the target
  std::string first;
  for (const int ranks : {1, 2, 3}) {
    const std::string all =
        predicted(ranks, {"--model", path("m.safetensors"), "--data", path("new.csv"), "--probabilities"});
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << ranks;
  }
  EXPECT_THAT(first, ContainsRegex("^kind,probability_cat,\"probability_d,og\",probability_dog\ncat,0\\.9"));
  EXPECT_THAT(first, HasSubstr("\n\"d,og\","));
  EXPECT_EQ(predicted(1, {"--model", path("m.safetensors"), "--data", path("new.csv")}), "kind\ncat\n\"d,og\"\ncat\n");
  expect_refusal(1, {"predict", "--model", path("m.safetensors"), "--data", path("new.csv"), "--out", path("p.npy")}, 2,
                 AllOf(HasSubstr("'cat'"), HasSubstr(".csv")));
  write_file(path("other.csv"), "color,size\n0,-2\n");
  expect_refusal(2, {"predict", "--model", path("m.safetensors"), "--data", path("other.csv"), "--out", path("p.csv")},
                 2, AllOf(HasSubstr("no column 'colour'"), HasSubstr("did you mean 'color'?")));
  write_file(path("strange.csv"), "colour,size,kind\n0,-2,cat\n0,-2,cow\n");
  expect_refusal(2, {"evaluate", "--model", path("m.safetensors"), "--data", path("strange.csv")}, 2,
                 AllOf(HasSubstr("'cow'"), HasSubstr("'cat', 'd,og', 'dog'")));
}

TEST_F(Predict, AgreesWithTheAccuracyOnEveryRow) {
  const std::string table = data_path("datasets/digits.csv");
  train(1, {"--data", table, "--task", "multiclass", "--standardize", "--lr", "0.3", "--epochs", "2", "--save",
            path("m.safetensors"), "--quiet"});
  const auto scores = end_of(2, {"evaluate", "--model", path("m.safetensors"), "--data", table});
  std::string first;
  for (const int ranks : {1, 2, 3}) {
    const std::string all = predicted(ranks, {"--model", path("m.safetensors"), "--data", table});
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << ranks;
  }
  std::ifstream rows(table);
  std::istringstream told(first);
  std::string row, label;
  int right = -1;  // the headers agree
  while (std::getline(rows, row) && std::getline(told, label)) {
    if (row.substr(row.rfind(',') + 1) == label) ++right;
  }
  EXPECT_DOUBLE_EQ(scores["accuracy"], right / 1797.0);
}

TEST_F(Predict, OrFailsAndLeavesWhatWasThere) {
  save_linear("m.safetensors", {1, 1}, {2}, {1});
  write_file(path("x.csv"), "a\n1\nx\n");
  write_file(path("p.csv"), "before");
  const std::vector<std::string> arguments{"predict", "--model", path("m.safetensors"), "--data", path("x.csv")};
  const auto refused = [&](std::vector<std::string> more, const ::testing::Matcher<std::string>& message) {
    more.insert(more.begin(), arguments.begin(), arguments.end());
    expect_refusal(1, more, 2, message);
    EXPECT_EQ(file_bytes(path("p.csv")), "before");
  };
  refused({"--out", path("p.csv")}, HasSubstr("'x' is not a number"));
  refused({"--out", path("p.txt")}, HasSubstr(".csv or .npy"));
  refused({}, HasSubstr("--out FILE is missing"));
  refused({"--out", path("x.csv")}, HasSubstr("the same file"));
  refused({"--out", path("p.csv"), "--missing", "drop"}, HasSubstr("--missing drop"));
  refused({"--out", path("p.csv"), "--probabilities"}, HasSubstr("--probabilities"));
  refused({"--out", path("p.csv"), "--task", "multiclass"}, HasSubstr("1 output"));
  expect_refusal(1, {"evaluate", "--data", path("x.csv")}, 2, HasSubstr("--model FILE is missing"));
  expect_refusal(1, {"evaluate", "--model", path("x.csv"), "--data", path("x.csv")}, 2, HasSubstr("the same file"));
}

}  // namespace
}  // namespace ddp::test
