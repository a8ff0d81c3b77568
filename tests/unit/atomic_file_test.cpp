// A file is written as a whole or not at all, and whatever goes wrong leaves the old one and no litter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <linear_ddp/base/atomic_file.hpp>
#include <linear_ddp/base/error.hpp>
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace ddp {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void write_text(const std::string& path, const std::string& text) {
  write_file_atomically(path, {bytes_of(text)});
}

std::string content(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class AtomicFile : public ::testing::Test {
 protected:
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.insert(entry.path().filename().string());
    return names;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  test::TemporaryFolder folder_;
};

TEST_F(AtomicFile, WritesThePartsOneAfterTheOther) {
  const std::string first("a\0b", 3), last(5'000'000, 'x');
  write_file_atomically(path("out"), {bytes_of(first), {}, bytes_of(last)});
  EXPECT_EQ(content(path("out")), first + last);
  EXPECT_EQ(files(), std::set<std::string>{"out"});
}

TEST_F(AtomicFile, ReplacesAFileAndMakesFolders) {
  write_text(path("out"), "a long old text");
  write_text(path("out"), "new");
  EXPECT_EQ(content(path("out")), "new");

  write_text(path("deep/er/out"), "made");
  EXPECT_EQ(content(path("deep/er/out")), "made");
  EXPECT_EQ(files(), (std::set<std::string>{"deep", "out"}));
}

TEST_F(AtomicFile, WritesAnEmptyFileAndARelativePath) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  write_file_atomically("empty", {});
  require_writable("other");
  fs::current_path(before);
  EXPECT_EQ(files(), std::set<std::string>{"empty"});
  EXPECT_EQ(fs::file_size(path("empty")), 0U);
}

TEST_F(AtomicFile, AReaderSeesTheOldFileOrTheNewOne) {
  write_text(path("out"), "old");
  std::ifstream reader(path("out"));
  write_text(path("out"), "new");
  std::string seen;
  reader >> seen;
  EXPECT_EQ(seen, "old") << "the open file was written to, instead of being replaced";
}

TEST_F(AtomicFile, RefusesWhatIsNoRegularFile) {
  const std::string folder = path("folder");
  fs::create_directory(folder);
  const std::string fifo = path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const auto& work :
       {+[](const std::string& p) { write_text(p, "x"); }, +[](const std::string& p) { require_writable(p); }}) {
    EXPECT_THAT(message_of<Error>([&] { work(folder); }), AllOf(HasSubstr(folder), HasSubstr("is a folder")));
    EXPECT_THAT(message_of<Error>([&] { work(folder + "/"); }), AllOf(HasSubstr(folder), HasSubstr("is a folder")));
    EXPECT_THAT(message_of<Error>([&] { work(fifo); }), AllOf(HasSubstr(fifo), HasSubstr("not a regular file")));
    EXPECT_THAT(message_of<Error>([&] { work("/dev/null"); }), HasSubstr("not a regular file"));
    EXPECT_THROW(work(""), Error);
  }
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(files(), (std::set<std::string>{"fifo", "folder"}));
}

TEST_F(AtomicFile, LinksStayAndWhereTheyLeadIsWritten) {
  fs::create_directory(path("store"));
  fs::create_symlink("store/real", path("relative"));
  fs::create_symlink(path("relative"), path("chain"));
  for (const char* text : {"through a link that leads to nothing", "again"}) {
    require_writable(path("chain"));
    write_text(path("chain"), text);
    EXPECT_EQ(content(path("store/real")), text);
    EXPECT_TRUE(fs::is_symlink(path("chain")) && fs::is_symlink(path("relative")));
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path("store/real"))));
  }
  fs::create_symlink("circle", path("circle"));
  EXPECT_THAT(message_of<Error>([&] { write_text(path("circle"), "x"); }), HasSubstr(std::strerror(ELOOP)));
  EXPECT_EQ(files(), (std::set<std::string>{"chain", "circle", "relative", "store"}));
}

TEST_F(AtomicFile, AReplacedFileKeepsItsPermissionsAndANewOneHasTheUmasks) {
  const auto permissions = [&] { return static_cast<unsigned>(fs::status(path("out")).permissions()); };
  const mode_t before = ::umask(0027);
  write_text(path("out"), "new");
  EXPECT_EQ(permissions(), 0640U);
  for (const unsigned mode : {0600U, 0644U, 0666U, 0755U}) {
    fs::permissions(path("out"), static_cast<fs::perms>(mode));
    write_text(path("out"), "replaced");
    EXPECT_EQ(permissions(), mode);
  }
  ::umask(before);
}

// Ranks of two runs on two hosts may have the same process number; so have threads.
TEST_F(AtomicFile, WritersAtTheSameTimeLeaveTheFileOfOneOfThem) {
  const std::string name(255, 'n');  // the longest that there is
  std::vector<std::thread> writers;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    writers.emplace_back([&, letter] {
      for (int round = 0; round < 20; ++round) write_text(path(name), std::string(50'000, letter));
    });
  }
  for (auto& writer : writers) writer.join();
  const std::string text = content(path(name));
  EXPECT_EQ(text, std::string(50'000, text.at(0)));
  EXPECT_EQ(files(), std::set<std::string>{name});
}

// Root may write anywhere, so a folder without permission would prove nothing here.
TEST_F(AtomicFile, SaysWhyAFolderCannotBeWrittenTo) {
  write_text(path("file"), "old");
  const std::string inside_a_file = path("file") + "/x", inside_proc = "/proc/x";
  for (const auto& work :
       {+[](const std::string& p) { write_text(p, "x"); }, +[](const std::string& p) { require_writable(p); }}) {
    EXPECT_THAT(message_of<Error>([&] { work("/dev/null/x"); }),
                AllOf(HasSubstr("/dev/null/x"), HasSubstr(std::strerror(ENOTDIR))));
    EXPECT_THAT(message_of<Error>([&] { work(inside_a_file); }),
                AllOf(HasSubstr(inside_a_file), HasSubstr(std::strerror(ENOTDIR))));
    EXPECT_THAT(message_of<Error>([&] { work(inside_proc); }),
                AllOf(HasSubstr(inside_proc), HasSubstr(std::strerror(ENOENT))));
  }
  EXPECT_EQ(content(path("file")), "old");
}

TEST_F(AtomicFile, RequireWritableLeavesNothingAndTouchesNothing) {
  write_text(path("out"), "old");
  require_writable(path("out"));
  require_writable(path("new/out"));
  EXPECT_EQ(content(path("out")), "old");
  EXPECT_EQ(files(), (std::set<std::string>{"new", "out"}));
  EXPECT_TRUE(fs::is_empty(path("new")));
}

/// Writes much more than fits over an old file, and expects `error`, the old file and no litter.
void expect_intact_when_full(const std::string& path, int error) {
  const std::string large(std::size_t{8} << 20U, 'x');
  EXPECT_THAT(message_of<Error>([&] { write_text(path, large); }),
              AllOf(HasSubstr(path), HasSubstr(std::strerror(error))));
  EXPECT_EQ(content(path), "old");
  const fs::directory_iterator entries(fs::path(path).parent_path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(AtomicFile, AFileLimitLeavesTheOldFile) {
  write_text(path("out"), "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);  // else the system ends the process
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_intact_when_full(path("out"), EFBIG);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
}

TEST_F(AtomicFile, AFullDiskLeavesTheOldFile) {
  const std::string disk = path("disk");
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "needs the right to mount a tmpfs";
  write_text(disk + "/out", "old");
  expect_intact_when_full(disk + "/out", ENOSPC);
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

}  // namespace
}  // namespace ddp
