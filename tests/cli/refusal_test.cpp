// Everything that cannot be done is refused by all ranks, once, with the right status and nothing left behind.
#include <filesystem>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CommandLine, UnknownOptionsAreRefusedWithTheNearest) {
  expect_refusal(2, {"--momentun", "0.9"}, 2, AllOf(HasSubstr("--momentun"), HasSubstr("--momentum")));
  expect_refusal(1, {"--lr", "fast"}, 2, AllOf(HasSubstr("--lr"), HasSubstr("fast")));
  expect_refusal(1, {"trian"}, 2, HasSubstr("trian"));
  expect_refusal(1, {"--device", "gpu"}, 2, AllOf(HasSubstr("--device"), HasSubstr("gpu"), HasSubstr("cuda")));
  for (const char* command : {"info", "bench", "train"}) {
    expect_refusal(1, {"--quiet", command}, 2, AllOf(HasSubstr("command comes first"), HasSubstr(command)));
  }
}

TEST(CommandLine, NumbersThatCannotBeMeantAreRefused) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"--steps", "0"},        {"--batch-size", "0"}, {"--epochs", "1.5"}, {"--in", "99999999999999999999"},
      {"--global-batch", "0"}, {"--seed", "-1"},      {"--timeout", "0"},  {"--timeout", "9223372036854775807"},
      {"--lr", "-1"},          {"--lr", "nan"},       {"--lr", "inf"},     {"--weight-decay", "1e300"},
      {"--momentum", "0.9x"}};
  for (const auto& [option, value] : wrong) {
    // Before the data are looked for.
    expect_refusal(1, {"--data", "/nowhere/nope.csv", option, value}, 2,
                   AllOf(HasSubstr(option + ": "), HasSubstr(value), Not(HasSubstr("nope"))));
  }
  expect_refusal(1, {"--nesterov", "--data", "/nowhere/nope.csv"}, 2,
                 AllOf(HasSubstr("--nesterov"), HasSubstr("--momentum")));
  expect_refusal(2, {"--batch-size", "4611686018427387904"}, 2, HasSubstr("--batch-size"));
}

TEST(CommandLine, EmptyValuesAreRefused) {  // most likely of variables that are not set
  for (const char* option : {"--data", "--target", "--init", "--save", "--metrics", "--steps", "--global-batch"}) {
    const auto message = HasSubstr(std::string(option) + ": its value is empty");
    expect_refusal(1, {option, ""}, 2, message);
    expect_refusal(1, {std::string(option) + "=", "--quiet"}, 2, message);
  }
}

TEST(CommandLine, OptionsThatAreNotThereYetAreRefusedByName) {
  for (const char* option : {"--threads", "--report", "--config"}) {
    expect_refusal(1, {option, "1"}, 2, AllOf(HasSubstr(option), HasSubstr("not there yet")));
  }
  expect_refusal(1, {"--precision", "bf16"}, 2, AllOf(HasSubstr("bf16"), HasSubstr("not there yet")));
  expect_refusal(1, {"--optimizer", "sdg"}, 2, AllOf(HasSubstr("sdg"), HasSubstr("sgd")));
  expect_refusal(1, {"--precision", "bf16"}, 2, AllOf(HasSubstr("bf16"), HasSubstr("not there yet")));
}

TEST(CommandLine, OptionsThatWouldBeIgnoredAreRefused) {
  const std::vector<std::vector<std::string>> of_tables{
      {"--target", "y"},     {"--features", "a"},       {"--exclude", "b"}, {"--weights", "w"},
      {"--missing", "drop"}, {"--task", "binary"},      {"--header", "no"}, {"--delimiter", ";"},
      {"--decimal", ","},    {"--standardize"},         {"--no-shuffle"},   {"--evaluate-train"},
      {"--drop-last"},       {"--global-batch", "full"}};
  for (const auto& arguments : of_tables) {
    expect_refusal(1, arguments, 2, AllOf(HasSubstr(arguments[0]), HasSubstr("needs --data")));
  }
  for (const char* option : {"--in", "--out"}) {
    expect_refusal(1, {"--data", data_path("cases/BASE.csv"), option, "10"}, 2,
                   AllOf(HasSubstr(option), HasSubstr("synthetic")));
  }
  expect_refusal(1, {"--data", data_path("cases/BASE.csv"), "--log-every", "2"}, 2, HasSubstr("--metrics"));
  expect_refusal(1, {"--data", data_path("cases/P20-c.npy"), "--header", "no"}, 2, HasSubstr("--header"));
}

TEST(CommandLine, OptionsOfAnotherTaskLossOrOptimizerAreRefused) {
  const std::string table = data_path("cases/BASE.csv");
  const std::vector<std::vector<std::string>> wrong{
      {"--momentum", "--momentum", "0.9", "--optimizer", "adam"},
      {"--betas", "--betas", "0.9,0.99"},
      {"--amsgrad", "--amsgrad", "--optimizer", "sgd"},
      {"two numbers", "--betas", "0.9", "--optimizer", "adamw"},
      {"from 0 to below 1", "--betas", "0.9,1", "--optimizer", "adamw"},
      {"--class-weights", "--class-weights", "1,2", "--task", "regression"},
      {"2 classes", "--class-weights", "1,2,3", "--task", "binary", "--data", data_path("cases/N05-01.csv")},
      {"--label-smoothing", "--label-smoothing", "0.1", "--task", "binary"},
      {"label smoothing", "--label-smoothing", "1", "--task", "multiclass"},
      {"does not fit --task binary", "--loss", "mse", "--task", "binary"},
      {"step:SIZE", "--schedule", "step"},
      {"linear:START:END:STEPS", "--schedule", "linear:0.1"},
      {"accepted: constant, step, cosine, linear", "--schedule", "cosin"},
      {"--clip-grad-norm", "--clip-grad-norm", "0"},
      {"--l2", "--l2", "-1"}};
  for (const auto& one : wrong) {
    std::vector<std::string> arguments(one.begin() + 1, one.end());
    const bool has_data = std::find(one.begin(), one.end(), "--data") != one.end();
    if (!has_data) arguments.insert(arguments.end(), {"--data", table});
    expect_refusal(1, arguments, 2, HasSubstr(one[0]));
  }
  expect_refusal(1, {"--loss", "cross-entropy"}, 2, HasSubstr("needs --data"));
}

TEST(CommandLine, OneFileForTwoIsRefusedAndStays) {
  const ScratchFolder scratch;
  const std::string table = scratch / "a.csv", link = scratch / "b.csv", elsewhere = scratch / "./c/../a.csv";
  std::filesystem::copy_file(data_path("cases/BASE.csv"), table);
  std::filesystem::create_hard_link(table, link);
  const auto size = std::filesystem::file_size(table);
  for (const char* option : {"--save", "--metrics", "--init"}) {
    for (const auto& name : {table, link, elsewhere}) {
      expect_refusal(1, {"--data", table, option, name}, 2,
                     AllOf(HasSubstr("--data"), HasSubstr(option), HasSubstr("the same file")));
    }
  }
  expect_refusal(1, {"--save", "not-there-yet", "--metrics", "./not-there-yet"}, 2, HasSubstr("the same file"));
  EXPECT_EQ(std::filesystem::file_size(table), size);
  const std::string model = scratch / "m.safetensors";
  train(1, {"--quiet", "--save", model});
  train(1, {"--quiet", "--init", model, "--save", model});  // trains on
}

TEST(CommandLine, OptionsThatContradictEachOtherAreRefused) {
  expect_refusal(1, {"--data", data_path("cases/BASE.csv"), "--batch-size", "2", "--global-batch", "4"}, 2,
                 AllOf(HasSubstr("--batch-size"), HasSubstr("--global-batch")));
  expect_refusal(1, {"--backend", "nccl", "--device", "cpu"}, 2, AllOf(HasSubstr("nccl"), HasSubstr("mpi")));
  expect_refusal(3, {"--global-batch", "20"}, 2, AllOf(HasSubstr("20"), HasSubstr("3 ranks")));
  expect_refusal(2, {"--data", data_path("cases/N06-unscaled.csv"), "--standardize", "--no-bias"}, 2,
                 HasSubstr("--no-bias"));
}

TEST(Data, AWrongTokenInTheLastRanksShareEndsAllRanks) {
  const ScratchFolder scratch;
  for (const int ranks : {1, 2, 4}) {
    expect_refusal(ranks,
                   {"--data", data_path("cases/L07-bad-line-last-quarter.csv"), "--target", "y", "--save",
                    scratch / "m.safetensors"},
                   2, AllOf(HasSubstr("line 40"), HasSubstr("column 2"), HasSubstr("oops")));
    EXPECT_FALSE(std::filesystem::exists(scratch / "m.safetensors"));
  }
}

TEST(Data, AnUnreadableFileEndsAllRanks) {
  expect_refusal(3, {"--data", "/nowhere/nope.csv", "--target", "y"}, 2,
                 AllOf(HasSubstr("/nowhere/nope.csv"), HasSubstr("No such file or directory")));
  expect_refusal(2, {"--data", data_path("cases/P09-header-only.csv"), "--target", "y"}, 2, HasSubstr("no data rows"));
  expect_refusal(2, {"--data", data_path("cases/BASE.csv"), "--target", "z"}, 2, HasSubstr("no column 'z'"));
  expect_refusal(2, {"--data", "/etc/hostname"}, 2, HasSubstr("/etc/hostname"));
}

TEST(Outputs, AreCheckedBeforeTraining) {
  for (const char* option : {"--save", "--metrics"}) {
    expect_refusal(4, {"--data", data_path("cases/BASE.csv"), "--target", "y", option, "/dev/null/x"}, 1,
                   AllOf(HasSubstr("/dev/null"), HasSubstr("Not a directory")));
  }
}

TEST(Outputs, AFullDiskIsNoSuccess) {
  for (const char* arguments : {"", "--help", "--version", "info"}) {
    const auto outcome = run({"sh", "-c", std::string(LINEAR_DDP_PROGRAM " ") + arguments + " > /dev/full"});
    EXPECT_EQ(outcome.status, 1) << arguments;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("standard output"), HasSubstr("No space left on device"))) << arguments;
  }
  expect_refusal(1, {"--quiet", "--metrics", "/dev/full"}, 1, HasSubstr("No space left on device"));
}

TEST(Metrics, OfAnEarlierRunStayUntilTheTrainingStarts) {
  const ScratchFolder scratch;
  const std::vector<std::string> to_file{"--metrics", scratch / "m.jsonl"};
  const auto refused = [&] {
    expect_refusal(2, {"--data", "/nowhere/nope.csv", "--metrics", scratch / "m.jsonl"}, 2, HasSubstr("nope.csv"));
    return read_metrics(scratch / "m.jsonl");
  };
  const auto first = refused();  // into a new file
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0]["event"], "end");
  EXPECT_EQ(first[0]["status"], "error");
  EXPECT_THAT(first[0]["message"].get<std::string>(), HasSubstr("nope.csv"));
  train(2, to_file);
  const auto earlier = read_metrics(scratch / "m.jsonl");
  EXPECT_EQ(earlier[0]["event"], "start");
  EXPECT_EQ(refused(), earlier);
  train(1, to_file);
  EXPECT_EQ(read_metrics(scratch / "m.jsonl")[0]["world_size"], 1);
}

TEST(Init, AFileOfAnotherShapeIsRefused) {
  const ScratchFolder scratch;
  train(1, {"--in", "3", "--out", "2", "--save", scratch / "m.safetensors"});
  expect_refusal(2, {"--in", "4", "--out", "2", "--init", scratch / "m.safetensors"}, 2,
                 AllOf(HasSubstr("weight"), HasSubstr("[2, 3]"), HasSubstr("[2, 4]")));
  expect_refusal(2, {"--in", "3", "--out", "2", "--no-bias", "--init", scratch / "m.safetensors"}, 2,
                 AllOf(HasSubstr("'bias'"), HasSubstr("--no-bias")));
  expect_refusal(2, {"--init", "/nowhere/m.safetensors"}, 2, HasSubstr("/nowhere/m.safetensors"));
}

TEST(Launch, SingletonsOfALargerStepRefuseToRun) {
  for (const char* variable : {"SLURM_STEP_NUM_TASKS", "PMI_SIZE"}) {
    const auto outcome = run({LINEAR_DDP_PROGRAM}, {{variable, "4"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "2"}});
    EXPECT_EQ(outcome.status, 2) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(std::string(variable) + "=4"), HasSubstr("srun --mpi=pmix")));
  }
}

TEST(Device, CudaWithoutAGpuSaysWhy) {
  expect_refusal(2, {"--device", "cuda"}, 2,
                 AnyOf(HasSubstr("CUDA_VISIBLE_DEVICES is empty"), HasSubstr("driver"), HasSubstr("without CUDA")),
                 {{"CUDA_VISIBLE_DEVICES", ""}});
}

}  // namespace
}  // namespace ddp::test
