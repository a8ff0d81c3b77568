// The folders of the library include only folders to their right: training ▶ data ▶ … ▶ base.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

namespace {

namespace fs = std::filesystem;

constexpr std::array rooms{"training", "data", "parallel", "optim", "nn", "comm", "device", "launch", "base"};

TEST(House, FoldersOnlyIncludeWhatIsToTheirRight) {
  const fs::path library = fs::path(LINEAR_DDP_TEST_DATA) / "../../lib/linear_ddp";
  const std::regex include(R"(^#include [<"]linear_ddp/([a-z]+)/)");
  int includes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(library)) {
    if (!entry.is_regular_file()) continue;
    const std::string own = entry.path().parent_path().filename();
    const auto own_room = std::find(rooms.begin(), rooms.end(), own);
    ASSERT_NE(own_room, rooms.end()) << entry.path() << " is in no known folder";
    std::ifstream file(entry.path());
    std::smatch match;
    for (std::string line; std::getline(file, line);) {
      if (!std::regex_search(line, match, include)) continue;
      ++includes;
      EXPECT_TRUE(std::find(own_room, rooms.end(), match[1].str()) != rooms.end())
          << entry.path() << " includes " << match[1] << ", which is not to the right of " << own;
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
      EXPECT_FALSE(std::regex_search(line, std::regex(R"(#include.*(cuda|cublas|nccl|mpi)[a-z_]*\.h>)")))
          << header << ": " << line;
    }
  }
}

}  // namespace
