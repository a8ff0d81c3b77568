#include "support/subprocess.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace ddp::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Outcome shell(const std::string& script, const Environment& environment = {},
              std::chrono::seconds limit = std::chrono::seconds(60)) {
  return run({"bash", "-c", script}, environment, limit);
}

/// A zombie that nobody reaps has no command line.
bool is_running(const std::string& pid) {
  std::ifstream command("/proc/" + pid + "/cmdline");
  return command.peek() != std::ifstream::traits_type::eof();
}

TEST(Subprocess, GivesStatusAndBothStreams) {
  const auto outcome = shell("echo to out; echo to err >&2; exit 3");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(outcome.out, "to out\n");
  EXPECT_EQ(outcome.err, "to err\n");
  EXPECT_LT(outcome.seconds, 60);
}

TEST(Subprocess, ASignalIs128AndItsNumber) {
  EXPECT_EQ(shell("kill -TERM $$").status, 128 + SIGTERM);
  EXPECT_EQ(shell("kill -KILL $$").status, 128 + SIGKILL);
}

TEST(Subprocess, PassesArgumentsAsTheyAre) {
  EXPECT_EQ(run({"printf", "%s|", "a b", "", "$HOME", "'"}).out, "a b||$HOME|'|");
}

TEST(Subprocess, StandardInputIsEmpty) {
  EXPECT_EQ(run({"cat"}).status, 0);
}

TEST(Subprocess, NamesAProgramThatCannotBeStarted) {
  try {
    (void)run({"no-such-program"});
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no-such-program: No such file"));
  }
}

TEST(Subprocess, ReadsTwoLargeStreamsAtOnce) {
  // Far more than a pipe holds (64 KiB), first all of one stream, then both together.
  const auto outcome = shell(
      "yes | tr -d '\\n' | head -c 3000000 >&2; "
      "(yes | tr -d '\\n' | head -c 5000000) & (yes n | tr -d '\\n' | head -c 2000000 >&2); wait");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out.size(), 5'000'000U);
  EXPECT_EQ(std::ranges::count(outcome.out, 'y'), 5'000'000);
  EXPECT_EQ(outcome.err.size(), 5'000'000U);
  EXPECT_EQ(outcome.err.substr(2'999'998, 4), "yynn");
}

TEST(Subprocess, AddsEmptiesAndRemovesVariables) {
  setenv("SUBPROCESS_KEPT", "kept", 1);
  setenv("SUBPROCESS_CHANGED", "before", 1);
  setenv("SUBPROCESS_EMPTIED", "before", 1);
  setenv("SUBPROCESS_REMOVED", "before", 1);
  const auto outcome = shell("env | grep ^SUBPROCESS_ | sort", {{"SUBPROCESS_ADDED", "a=b c"},
                                                                {"SUBPROCESS_CHANGED", "after"},
                                                                {"SUBPROCESS_EMPTIED", ""},
                                                                {"SUBPROCESS_REMOVED", std::nullopt}});
  EXPECT_EQ(outcome.out,
            "SUBPROCESS_ADDED=a=b c\nSUBPROCESS_CHANGED=after\nSUBPROCESS_EMPTIED=\nSUBPROCESS_KEPT=kept\n");
}

TEST(Subprocess, AtTheLimitKillsAllItStarted) {
  // With set -m the child is in a process group of its own, as a rank is under Open MPI's mpirun.
  const auto outcome = shell("set -m; sleep 100 & echo $!; wait", {}, std::chrono::seconds(1));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.status, 128 + SIGKILL);
  EXPECT_LT(outcome.seconds, 30);
  const auto pid = outcome.out.substr(0, outcome.out.find('\n'));
  ASSERT_FALSE(pid.empty());
  EXPECT_FALSE(is_running(pid));
}

TEST(Subprocess, AChildThatOutlivesItsParentIsATimeOut) {
  const auto outcome = shell("sleep 100 & echo $!; exit 4", {}, std::chrono::seconds(1));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.status, 4);
  EXPECT_FALSE(is_running(outcome.out.substr(0, outcome.out.find('\n'))));
}

TEST(Subprocess, AProgramThatClosesItsStreamsIsWaitedFor) {
  EXPECT_EQ(shell("exec >&- 2>&-; sleep 0.2; exit 5").status, 5);
  const auto outcome = shell("exec >&- 2>&-; sleep 100", {}, std::chrono::seconds(1));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.status, 128 + SIGKILL);
}

TEST(Subprocess, MpirunStartsTheProgramOnRanks) {
  const auto argv = mpirun(3, {"--steps", "2"});
  ASSERT_EQ(argv.size(), 6U);
  EXPECT_THAT(argv[0], HasSubstr("mpi"));
  EXPECT_THAT(std::vector(argv.begin() + 1, argv.end()),
              ElementsAre("-np", "3", ::testing::EndsWith("/linear_ddp"), "--steps", "2"));
}

}  // namespace
}  // namespace ddp::test
