// The main of the tests under mpiexec: a failure on one rank fails the job, is told with its rank, and hangs nobody.
#include "support/program.hpp"

namespace ddp::test {
namespace {

Outcome run_failing(const std::string& name) {
  return run({LINEAR_DDP_MPIEXEC, "-np", "3", LINEAR_DDP_FAILING_TEST, "--gtest_filter=OneRank." + name}, {},
             std::chrono::seconds(30));
}

TEST(MpiMain, AnExpectationThatFailsOnOneRankFailsTheJob) {
  const auto outcome = run_failing("ExpectsInVain");
  EXPECT_NE(outcome.status, 0);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_THAT(outcome.err,
              ::testing::AllOf(::testing::HasSubstr("rank 1: "), ::testing::HasSubstr("expected failure")));
}

TEST(MpiMain, AFailureOnOneRankIsNotSkippedByTheOthers) {
  const auto outcome = run_failing("FailsWhileItsPeersSkip");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("expected failure"));
  EXPECT_THAT(outcome.out, ::testing::Not(::testing::HasSubstr("ALL TESTS SKIPPED")));  // which CTest believes
}

TEST(MpiMain, AnAssertionThatFailsOnOneRankHangsNobody) {
  const auto outcome = run_failing("AssertsInVainWhileItsPeersWait");
  EXPECT_NE(outcome.status, 0);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("expected failure"));
}

}  // namespace
}  // namespace ddp::test
