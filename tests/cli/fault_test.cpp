// A peer that dies or stops in the middle of a training ends the job, soon and with the right status.
#include "support/program.hpp"

namespace ddp::test {
namespace {

/// Two ranks train for ever; rank 1 gets the signal once they have reported a step. A rank that outlives its job is
/// ended by timeout.
Outcome train_with_signal_to_rank_1(const std::string& signal, const std::string& timeout,
                                    const std::string& arguments = "--steps 1000000000 --log-every 1000") {
  const ScratchFolder scratch;
  const std::string metrics = scratch / "m.jsonl";
  const std::string script =
      "[ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ] &&"
      " (until grep -q '\"event\":\"step\"' " +
      metrics + "; do sleep 0.05; done; kill -" + signal +
      " $$) &"
      " exec " LINEAR_DDP_PROGRAM " --quiet --metrics " +
      metrics + " --timeout " + timeout + " " + arguments;
  return run({LINEAR_DDP_MPIEXEC, "-np", "2", "timeout", "-s", "KILL", "60", "sh", "-c", script}, {},
             std::chrono::seconds(60));
}

TEST(Peer, ThatStopsIsNoticedByTheWatchdog) {
  const auto outcome = train_with_signal_to_rank_1("STOP", "2");
  EXPECT_EQ(outcome.status, 124) << outcome.out << outcome.err;
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_THAT(outcome.err,
              ::testing::ContainsRegex("rank 0 on .*: all-reduce number [0-9]+ of [0-9]+ bytes has not ended"));
}

// Most of the time goes into evaluations, which have collectives of their own.
TEST(Peer, ThatStopsInAnEvaluationIsNoticedToo) {
  for (int round = 0; round < 2; ++round) {
    const auto outcome = train_with_signal_to_rank_1(
        "STOP", "2",
        "--data " + data_path("cases/BASE.csv") + " --epochs 1000000000 --lr 0.01 --log-every 1 --evaluate-train");
    EXPECT_EQ(outcome.status, 124) << outcome.out << outcome.err;
    EXPECT_FALSE(outcome.timed_out);
    EXPECT_THAT(outcome.err, ::testing::ContainsRegex("rank 0 on .* has not ended"));
  }
}

TEST(Peer, ThatIsKilledEndsTheJob) {
  const auto outcome = train_with_signal_to_rank_1("KILL", "120");
  EXPECT_EQ(outcome.status, 128 + 9) << outcome.out << outcome.err;
  EXPECT_FALSE(outcome.timed_out);
}

}  // namespace
}  // namespace ddp::test
