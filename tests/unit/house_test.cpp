// The folders of the library include only folders to their right: training ▶ data ▶ … ▶ base.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace {

namespace fs = std::filesystem;

constexpr std::array rooms{"training", "data", "parallel", "optim", "nn", "comm", "device", "launch", "base"};

/// "nn" of `#include <linear_ddp/nn/model.hpp>`; empty for another line.
std::string included_room(std::string_view line) {
  constexpr std::string_view include = "#include ", library = "linear_ddp/";
  if (!line.starts_with(include) || line.substr(include.size() + 1, library.size()) != library) return {};
  line.remove_prefix(include.size() + 1 + library.size());
  return std::string(line.substr(0, line.find('/')));
}

TEST(House, FoldersOnlyIncludeWhatIsToTheirRight) {
  const fs::path library = fs::path(LINEAR_DDP_TEST_DATA) / "../../lib/linear_ddp";
  int includes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(library)) {
    if (!entry.is_regular_file()) continue;
    const std::string own = entry.path().parent_path().filename();
    const auto own_room = std::find(rooms.begin(), rooms.end(), own);
    ASSERT_NE(own_room, rooms.end()) << entry.path() << " is in no known folder";
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      const std::string room = included_room(line);
      if (room.empty()) continue;
      ++includes;
      EXPECT_TRUE(std::find(own_room, rooms.end(), room) != rooms.end())
          << entry.path() << " includes " << room << ", which is not to the right of " << own;
    }
  }
  EXPECT_GT(includes, 20) << "nothing was checked";
}

TEST(House, PublicHeadersIncludeNoBackend) {
  const fs::path library = fs::path(LINEAR_DDP_TEST_DATA) / "../../lib/linear_ddp";
  for (const char* header : {"device/device.hpp", "device/select.hpp", "comm/process_group.hpp", "nn/model.hpp"}) {
    std::ifstream file(library / header);
    ASSERT_TRUE(file) << header;
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("#include")) continue;
      for (const char* backend : {"cuda", "cublas", "nccl.h", "<mpi"}) {
        EXPECT_EQ(line.find(backend), line.npos) << header << ": " << line;
      }
    }
  }
}

}  // namespace
