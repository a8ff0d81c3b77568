// Everything that cannot be done is refused by all ranks, once, with the right status and nothing left behind.
#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(CommandLine, UnknownOptionsAreRefusedWithTheNearest) {
  expect_refusal(2, {"--momentun", "0.9"}, 2, AllOf(HasSubstr("--momentun"), HasSubstr("--momentum")));
  expect_refusal(1, {"--lr", "fast"}, 2, AllOf(HasSubstr("--lr"), HasSubstr("fast")));
  expect_refusal(1, {"trian"}, 2, HasSubstr("trian"));
  expect_refusal(1, {"--device", "gpu"}, 2, AllOf(HasSubstr("--device"), HasSubstr("gpu"), HasSubstr("cuda")));
  expect_refusal(1, {"--batch-size", "0"}, 2, HasSubstr("--batch-size"));
  expect_refusal(1, {"--lr", "-1"}, 2, HasSubstr("--lr"));
  expect_refusal(1, {"--nesterov"}, 2, AllOf(HasSubstr("--nesterov"), HasSubstr("--momentum")));
}

TEST(CommandLine, OptionsThatAreNotThereYetAreRefusedByName) {
  for (const char* option : {"--checkpoint", "--hidden", "--deterministic", "--valid", "--threads", "--l2"}) {
    expect_refusal(1, {option, "1"}, 2, AllOf(HasSubstr(option), HasSubstr("not there yet")));
  }
  expect_refusal(1, {"--optimizer", "adam"}, 2, AllOf(HasSubstr("adam"), HasSubstr("not there yet")));
  expect_refusal(1, {"--optimizer", "sdg"}, 2, AllOf(HasSubstr("sdg"), HasSubstr("sgd")));
  expect_refusal(1, {"--loss", "huber"}, 2, AllOf(HasSubstr("huber"), HasSubstr("not there yet")));
  expect_refusal(1, {"predict"}, 2, AllOf(HasSubstr("predict"), HasSubstr("not there yet")));
}

TEST(CommandLine, OptionsThatContradictEachOtherAreRefused) {
  expect_refusal(2, {"--standardize"}, 2, AllOf(HasSubstr("--standardize"), HasSubstr("--data")));
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
  expect_refusal(2, {"--data", data_path("cases/BASE.csv"), "--target", "z"}, 2, HasSubstr("z"));
  expect_refusal(2, {"--data", data_path("cases/N09-bias-only.csv"), "--target", "y"}, 2, HasSubstr("feature"));
  expect_refusal(2, {"--data", "/etc/hostname"}, 2, HasSubstr("/etc/hostname"));
}

TEST(Outputs, AreCheckedBeforeTraining) {
  for (const char* option : {"--save", "--metrics"}) {
    expect_refusal(4, {"--data", data_path("cases/BASE.csv"), "--target", "y", option, "/dev/null/x"}, 1,
                   AllOf(HasSubstr("/dev/null"), HasSubstr("Not a directory")));
  }
}

TEST(Init, AFileOfAnotherShapeIsRefused) {
  const ScratchFolder scratch;
  train(1, {"--in", "3", "--out", "2", "--save", scratch / "m.safetensors"});
  expect_refusal(2, {"--in", "4", "--out", "2", "--init", scratch / "m.safetensors"}, 2,
                 AllOf(HasSubstr("weight"), HasSubstr("[2, 3]"), HasSubstr("[2, 4]")));
  expect_refusal(2, {"--init", "/nowhere/m.safetensors"}, 2, HasSubstr("/nowhere/m.safetensors"));
}

TEST(Divergence, EndsAllRanksAtTheFirstLossThatIsNotFinite) {
  const ScratchFolder scratch;
  expect_refusal(2,
                 {"--data", data_path("cases/N06-unscaled.csv"), "--target", "y", "--lr", "0.1", "--epochs", "50",
                  "--global-batch", "full", "--save", scratch / "m.safetensors", "--metrics", scratch / "m.jsonl"},
                 1, AllOf(HasSubstr("at step "), HasSubstr("--standardize"), HasSubstr("--lr")));
  EXPECT_FALSE(std::filesystem::exists(scratch / "m.safetensors"));
  const auto events = read_metrics(scratch / "m.jsonl");
  EXPECT_EQ(events.back()["event"], "end");
  EXPECT_EQ(events.back()["status"], "error");
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
