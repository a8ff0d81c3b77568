// The rules of the house that a program can check; the first: the folders of the library include only folders to their
// right, training ▶ data ▶ … ▶ base.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path source = LINEAR_DDP_SOURCE_DIR;
constexpr std::array rooms{"training", "data", "parallel", "optim", "nn", "comm", "device", "launch", "base"};

/// "nn" of `#include <linear_ddp/nn/model.hpp>`; empty for another line.
std::string included_room(std::string_view line) {
  constexpr std::string_view include = "#include ", library = "linear_ddp/";
  if (!line.starts_with(include) || line.substr(include.size() + 1, library.size()) != library) return {};
  line.remove_prefix(include.size() + 1 + library.size());
  return std::string(line.substr(0, line.find('/')));
}

TEST(House, FoldersOnlyIncludeWhatIsToTheirRight) {
  const fs::path library = source / "lib/linear_ddp";
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

/// The files of the FILE_SET in lib/CMakeLists.txt, which are what is installed.
std::vector<std::string> public_headers() {
  std::vector<std::string> headers;
  std::ifstream file(source / "lib/CMakeLists.txt");
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find("linear_ddp/"), end = line.find(".hpp");
    if (begin != line.npos && end != line.npos) headers.push_back(line.substr(begin, end + 4 - begin));
  }
  return headers;
}

TEST(House, PublicHeadersIncludeNoBackend) {
  EXPECT_GT(public_headers().size(), 20U) << "nothing was checked";
  for (const auto& header : public_headers()) {
    std::ifstream file(source / "lib" / header);
    ASSERT_TRUE(file) << header;
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("#include")) continue;
      // A World wraps a communicator of the caller's.
      if (header == "linear_ddp/launch/world.hpp" && line == "#include <mpi.h>") continue;
      for (const char* backend : {"cuda", "cublas", "nccl.h", "<mpi", "Eigen", "fmt/", "nlohmann"}) {
        EXPECT_EQ(line.find(backend), line.npos) << header << ": " << line;
      }
    }
  }
}

TEST(House, NoSourceHasMoreThan300Lines) {
  int files = 0;
  for (const char* folder : {"lib", "app", "kernels", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".hpp" && extension != ".cu" && extension != ".cuh") continue;
      ++files;
      std::ifstream file(entry.path());
      EXPECT_LE(std::count(std::istreambuf_iterator<char>(file), {}, '\n'), 300) << entry.path();
    }
  }
  EXPECT_GT(files, 100) << "nothing was checked";
}

/// The ids X00 of the tests `TEST(…Cases, X00_…)` in tests/cases, each file of which is one of CMake's.
std::set<std::string> ids_of_tests() {
  std::ifstream cmake(source / "tests/CMakeLists.txt");
  const std::string listed{std::istreambuf_iterator<char>(cmake), {}};
  std::set<std::string> ids;
  for (const auto& entry : fs::directory_iterator(source / "tests/cases")) {
    const std::string name = "cases/" + entry.path().stem().string() + " ";
    EXPECT_NE(listed.find(name), listed.npos) << name << "is not in tests/CMakeLists.txt";
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      constexpr std::string_view before = "Cases, ";
      const std::size_t at = line.find(before);
      if (line.starts_with("TEST(") && at != line.npos) ids.insert(line.substr(at + before.size(), 3));
    }
  }
  return ids;
}

TEST(House, EachCaseHasItsTest) {
  std::ifstream file(source / "tests/data/cases/ids.txt");
  std::set<std::string> ids;
  for (std::string id, kind; file >> id >> kind;) ids.insert(id);
  EXPECT_GT(ids.size(), 40U) << "nothing was checked";
  EXPECT_EQ(ids_of_tests(), ids);
}

}  // namespace
