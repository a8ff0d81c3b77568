#include "stop_signals.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace ddp::app {
namespace {

TEST(StopSignals, AreNotedTheFirstOfThem) {
  const StopSignals signals(true);
  EXPECT_EQ(signals.received(), 0);
  std::raise(SIGUSR2);
  EXPECT_EQ(signals.received(), SIGUSR2);
  std::raise(SIGTERM);  // at once: passed on by another way
  EXPECT_EQ(signals.received(), SIGUSR2);
}

TEST(StopSignals, BeginAnew) {
  {
    const StopSignals signals(false);
    std::raise(SIGINT);
    EXPECT_EQ(signals.received(), SIGINT);
  }
  const StopSignals signals(false);
  EXPECT_EQ(signals.received(), 0);
}

TEST(StopSignalsDeathTest, ASecondOneEndsTheProcess) {
  const auto twice = [](int first, int second) {
    const StopSignals signals(true);
    std::raise(first);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    std::raise(second);
  };
  EXPECT_EXIT(twice(SIGTERM, SIGTERM), ::testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(twice(SIGUSR1, SIGINT), ::testing::KilledBySignal(SIGINT), "");
}

TEST(StopSignalsDeathTest, OnlySigintIsHeldBackWithoutACheckpointAndNoneAfterwards) {
  const auto after = [] {
    { const StopSignals signals(true); }
    std::raise(SIGUSR1);
  };
  EXPECT_EXIT(after(), ::testing::KilledBySignal(SIGUSR1), "");
  const auto without = [] {
    const StopSignals signals(false);
    std::raise(SIGTERM);
  };
  EXPECT_EXIT(without(), ::testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignals, LeavesIgnoredOnesIgnored) {
  std::signal(SIGINT, SIG_IGN);
  {
    const StopSignals signals(true);
    std::raise(SIGINT);
    EXPECT_EQ(signals.received(), 0);
  }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

}  // namespace
}  // namespace ddp::app
