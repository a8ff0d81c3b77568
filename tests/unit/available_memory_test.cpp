#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include <linear_ddp/base/available_memory.hpp>
#include "support/temporary_folder.hpp"

namespace ddp::test {
namespace {

/// What Linux shows of a host.
class Host {
 public:
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = folder_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] std::int64_t available() const { return available_memory(folder_ / ""); }

 private:
  TemporaryFolder folder_;
};

constexpr const char* meminfo = "MemTotal:       4000 kB\nMemFree:        100 kB\nMemAvailable:   2000 kB\n";

TEST(AvailableMemory, IsTheHostsWhereNoGroupLimitsIt) {
  const Host host;
  EXPECT_EQ(host.available(), std::numeric_limits<std::int64_t>::max());
  host.write("proc/meminfo", meminfo);
  EXPECT_EQ(host.available(), 2000 * 1024);
  host.write("proc/self/cgroup", "0::/job/step\n");
  EXPECT_EQ(host.available(), 2000 * 1024);
  host.write("sys/fs/cgroup/job/memory.max", "max\n");
  host.write("sys/fs/cgroup/job/memory.current", "123\n");
  EXPECT_EQ(host.available(), 2000 * 1024);
}

TEST(AvailableMemory, IsWhatTheTightestGroupLeaves) {
  const Host host;
  host.write("proc/meminfo", meminfo);
  host.write("proc/self/cgroup", "1:name=systemd:/other\n0::/job/step\n");
  host.write("sys/fs/cgroup/job/step/memory.max", "1000000\n");
  host.write("sys/fs/cgroup/job/step/memory.current", "400000\n");
  EXPECT_EQ(host.available(), 600'000);
  host.write("sys/fs/cgroup/job/memory.max", "900000\n");
  host.write("sys/fs/cgroup/job/memory.current", "500000\n");
  EXPECT_EQ(host.available(), 400'000);
  host.write("sys/fs/cgroup/job/memory.stat", "anon 400000\nfile 50000\nfile_mapped 7\n");  // that can be given up
  EXPECT_EQ(host.available(), 450'000);
  host.write("sys/fs/cgroup/job/memory.current", "990000\n");
  EXPECT_EQ(host.available(), 0);
}

TEST(AvailableMemory, OfThisHostIsSomething) {
  EXPECT_GT(available_memory(), 1 << 20);
}

}  // namespace
}  // namespace ddp::test
