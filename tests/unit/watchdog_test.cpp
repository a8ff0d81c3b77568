#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include <linear_ddp/launch/watchdog.hpp>

namespace ddp {
namespace {

using namespace std::chrono_literals;

TEST(Watchdog, ReportsACollectiveThatDoesNotEnd) {
  std::promise<std::string> report;
  Watchdog watchdog(50ms, [&](const std::string& text) { report.set_value(text); });
  { const Watchdog::Watch done(watchdog, "broadcast", 8); }
  const Watchdog::Watch stuck(watchdog, "all-reduce", 512);
  EXPECT_THAT(report.get_future().get(), ::testing::StartsWith("all-reduce number 2 of 512 bytes has not ended"));
}

TEST(Watchdog, ReportsTheOuterOfTwoWhenTheInnerHasEnded) {
  std::promise<std::string> report;
  Watchdog watchdog(50ms, [&](const std::string& text) { report.set_value(text); });
  const Watchdog::Watch stuck(watchdog, "start", 8);
  { const Watchdog::Watch done(watchdog, "broadcast", 512); }
  EXPECT_THAT(report.get_future().get(), ::testing::ContainsRegex("^start number [0-9]+ of 8 bytes has not ended"));
}

TEST(Watchdog, ReportsTheInnerOfTwo) {
  std::promise<std::string> report;
  Watchdog watchdog(50ms, [&](const std::string& text) { report.set_value(text); });
  const Watchdog::Watch outer(watchdog, "start", 8);
  const Watchdog::Watch stuck(watchdog, "broadcast", 512);
  EXPECT_THAT(report.get_future().get(), ::testing::ContainsRegex("^broadcast number [0-9]+ of 512 bytes"));
}

TEST(Watchdog, IsSilentWhileCollectivesEnd) {
  bool reported = false;
  {
    Watchdog watchdog(2s, [&](const std::string&) { reported = true; });  // not even a busy machine stops us as long
    const auto end = std::chrono::steady_clock::now() + 3s;  // longer than the time-out, in short collectives
    while (std::chrono::steady_clock::now() < end) {
      const Watchdog::Watch watch(watchdog, "all-reduce", 512);
      std::this_thread::sleep_for(1ms);
    }
  }
  EXPECT_FALSE(reported);
}

TEST(Watchdog, IsSilentBetweenCollectives) {
  bool reported = false;
  {
    Watchdog watchdog(50ms, [&](const std::string&) { reported = true; });
    std::this_thread::sleep_for(500ms);
  }
  EXPECT_FALSE(reported);
}

}  // namespace
}  // namespace ddp
