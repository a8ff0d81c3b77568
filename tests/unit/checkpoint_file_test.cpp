// Checkpoints as files: what was written comes back, and what is not whole is found out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/training/checkpoint.hpp>
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace ddp {
namespace {

using test::message_of;
using ::testing::HasSubstr;

/// A state with all there can be.
struct State {
  std::vector<float> floats;
  std::vector<double> doubles, none;
  std::int64_t number = 0;
  bool flag = false;

  void exchange(Checkpoint& checkpoint) {
    checkpoint.exchange("floats", floats, 3);
    checkpoint.exchange("doubles", doubles, 2);
    checkpoint.exchange("none", none, 5);
    checkpoint.exchange("number", number);
    checkpoint.exchange("flag", flag);
  }
};

class CheckpointFiles : public ::testing::Test {
 protected:
  CheckpointFiles() {
    state_.exchange(checkpoint_);
    checkpoint_.set_text("told", "a \"quoted\" text\n");
  }
  void write(std::int64_t step, std::int64_t keep = 10) { write_checkpoint(folder_.path(), step, checkpoint_, keep); }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> steps;
    for (const auto& file : checkpoint_files(folder_.path())) steps.push_back(file.step);
    return steps;
  }

  test::TemporaryFolder folder_;
  State state_{{1.5F, -0.0F, 1e-45F}, {std::numeric_limits<double>::infinity(), std::nan("")}, {}, -7, true};
  Checkpoint checkpoint_;
};

TEST_F(CheckpointFiles, GiveBackWhatTheyTookUp) {
  write(3);
  Checkpoint read = read_checkpoint(checkpoint_path(folder_.path(), 3));
  State state{{}, {}, {1, 2}, 0, false};
  state.exchange(read);
  EXPECT_EQ(state.floats, state_.floats);
  EXPECT_TRUE(std::signbit(state.floats[1]));
  EXPECT_EQ(state.doubles[0], state_.doubles[0]);
  EXPECT_TRUE(std::isnan(state.doubles[1]));
  EXPECT_TRUE(state.none.empty());
  EXPECT_EQ(state.number, -7);
  EXPECT_TRUE(state.flag);
  EXPECT_EQ(read.text("told"), "a \"quoted\" text\n");
  EXPECT_EQ(read.text("not told"), "");
  std::vector<float> other;
  EXPECT_THAT(message_of<UseError>([&] { read.exchange("floats", other, 4); }), HasSubstr("floats is not the 4 numb"));
  EXPECT_THROW(read.exchange("doubles", other, 2), UseError);
  std::int64_t number = 0;
  EXPECT_THAT(message_of<UseError>([&] { read.exchange("told", number); }), HasSubstr("told is no whole number"));
}

TEST_F(CheckpointFiles, AreRefusedWhenTheyEndAnywhereEarlier) {
  write(1);
  const std::string path = checkpoint_path(folder_.path(), 1);
  for (auto size = static_cast<std::int64_t>(std::filesystem::file_size(path)) - 1; size >= 0; --size) {
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(size));
    EXPECT_THROW(static_cast<void>(read_checkpoint(path)), UseError) << size;
  }
}

// But for the spaces behind the header, of which a NUL is one too.
TEST_F(CheckpointFiles, AreRefusedWhenAnyBitOfThemIsAnotherOne) {
  write(1);
  const std::string path = checkpoint_path(folder_.path(), 1);
  std::ifstream file(path, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(file), {}};
  const std::size_t data_start = good.find_last_of('}') / 8 * 8 + 8;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    std::ofstream(path, std::ios::binary) << bad;
    if (good[bit / 8] == ' ' && bad[bit / 8] == '\0' && bit / 8 < data_start && bit / 8 > data_start - 8) continue;
    EXPECT_THROW(static_cast<void>(read_checkpoint(path)), UseError) << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST_F(CheckpointFiles, OfOtherProgramsAreNone) {
  const std::string path = folder_ / "step-1.safetensors";
  write_safetensors(path, {.tensors = {make_f32("floats", {1}, {1})}, .metadata = {}});
  EXPECT_THAT(message_of<UseError>([&] { static_cast<void>(read_checkpoint(path)); }), HasSubstr("no checksum"));
}

TEST_F(CheckpointFiles, AreFoundByTheirStepsAndOldOnesGo) {
  EXPECT_TRUE(checkpoint_files(folder_ / "nowhere").empty());
  for (const char* name : {"step-.safetensors", "step-1x.safetensors", "step-5", "model.safetensors"}) {
    std::ofstream(folder_ / name) << "another's";
  }
  std::ofstream(folder_ / ".step-000000000004.safetensors.0123.tmp") << "half";
  std::ofstream(folder_ / "step-1000000000000000.safetensors") << "torn";
  for (const std::int64_t step : std::vector<std::int64_t>{5, 30, 200, 1'000'000'000'000}) write(step, 3);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{1'000'000'000'000'000, 1'000'000'000'000, 200, 30}));
  // One that goes on from 30, as 200 and the others are torn.
  write(40, 1);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{1'000'000'000'000'000, 1'000'000'000'000, 200, 40}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".step-000000000004.safetensors.0123.tmp"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "model.safetensors"));
}

TEST_F(CheckpointFiles, NeedTheirFolder) {
  const std::string gone = folder_ / "gone";
  EXPECT_THAT(message_of<Error>([&] { write_checkpoint(gone, 1, checkpoint_, 1); }), HasSubstr("its folder is gone"));
  EXPECT_FALSE(std::filesystem::exists(gone));
}

}  // namespace
}  // namespace ddp
