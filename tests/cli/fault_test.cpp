// A peer that dies or stops in the middle of a training ends the job, soon and with the right status.
#include "support/program.hpp"

namespace ddp::test {
namespace {

/// Two ranks train for ever; a second after its start rank 1 gets the signal.
Outcome train_with_signal_to_rank_1(const std::string& signal, const std::string& timeout) {
  const std::string script = "[ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ] && (sleep 1; kill -" + signal +
                             " $$) & exec " LINEAR_DDP_PROGRAM " --quiet --steps 1000000000 --timeout " + timeout;
  return run({LINEAR_DDP_MPIEXEC, "-np", "2", "sh", "-c", script}, {}, std::chrono::seconds(60));
}

TEST(Peer, ThatStopsIsNoticedByTheWatchdog) {
  const auto outcome = train_with_signal_to_rank_1("STOP", "2");
  EXPECT_EQ(outcome.status, 124) << outcome.out << outcome.err;
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_THAT(outcome.err,
              ::testing::ContainsRegex("rank 0 on .*: all-reduce number [0-9]+ of [0-9]+ bytes has not ended"));
}

TEST(Peer, ThatIsKilledEndsTheJob) {
  const auto outcome = train_with_signal_to_rank_1("KILL", "120");
  EXPECT_NE(outcome.status, 0);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_LT(outcome.seconds, 20);
}

}  // namespace
}  // namespace ddp::test
