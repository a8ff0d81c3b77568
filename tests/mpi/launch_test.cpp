// The MPI job as a rank sees it, and failures that all ranks share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/launch/preflight.hpp>
#include "support/message_of.hpp"
#include "support/mpi_test_world.hpp"

namespace {

bool split_fails = false;
int duplicates = 0;  // made and not freed

}  // namespace

// MPI's profiling interface lets a program put itself before a call.
extern "C" int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* result) {
  return split_fails ? MPI_ERR_OTHER : PMPI_Comm_split_type(comm, type, key, info, result);
}
extern "C" int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* result) {
  ++duplicates;
  return PMPI_Comm_dup(comm, result);
}
extern "C" int MPI_Comm_free(MPI_Comm* comm) {
  --duplicates;
  return PMPI_Comm_free(comm);
}

namespace ddp {
namespace {

using test::world;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <class Work>
AgreedError agreed_error_of(Work&& work) {
  return test::thrown<AgreedError>(work);
}

TEST(World, RanksOfOneHostShareIt) {
  EXPECT_EQ(world().local_size(), world().size());
  EXPECT_EQ(world().local_rank(), world().rank());
  EXPECT_FALSE(world().host().empty());
}

/// A fifth of a second of each start, and of each test's here.
TEST(World, OnOneHostSparesOpenMpiItsSearchForNetworks) {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) GTEST_SKIP() << "needs Open MPI's mpirun";
  EXPECT_EQ(world().size(), world().local_size());
  EXPECT_NE(std::getenv("OMPI_MCA_pml"), nullptr);
}

TEST(World, WrapsACommunicatorTheCallerOwns) {
  MPI_Comm odd_or_even = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world().rank() % 2, world().rank(), &odd_or_even);
  {
    const World part(odd_or_even);
    EXPECT_EQ(part.rank(), world().rank() / 2);
    EXPECT_EQ(part.size(), (world().size() + (world().rank() % 2 == 0 ? 1 : 0)) / 2);
  }
  int finalized = 1;
  MPI_Finalized(&finalized);
  EXPECT_FALSE(finalized);
  MPI_Comm_free(&odd_or_even);
}

TEST(World, LeavesNoCommunicatorBehindWhenItCannotJoin) {
  const int before = duplicates;
  split_fails = true;
  EXPECT_THROW(const World world(MPI_COMM_WORLD), Error);
  split_fails = false;
  EXPECT_EQ(duplicates, before);
}

TEST(World, OnlyTheNearestLauncherTellsHowManyTasksItStarted) {
  ASSERT_EQ(launcher_mismatch(2), "");
  const char* names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
  std::vector<std::string> saved;
  for (const char* name : names) saved.emplace_back(std::getenv(name) ? std::getenv(name) : "");
  for (const char* name : names) unsetenv(name);

  EXPECT_EQ(launcher_mismatch(1), "");
  setenv("SLURM_NTASKS", "4", 1);
  EXPECT_EQ(launcher_mismatch(1), "") << "an salloc shell is no proof of tasks";
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  EXPECT_EQ(launcher_mismatch(1), "SLURM_STEP_NUM_TASKS=4");
  EXPECT_EQ(launcher_mismatch(4), "");
  setenv("PMI_SIZE", "1", 1);
  EXPECT_EQ(launcher_mismatch(1), "") << "mpirun -np 1 inside a step of four";
  setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
  EXPECT_EQ(launcher_mismatch(1), "OMPI_COMM_WORLD_SIZE=3");

  for (std::size_t i = 0; i < saved.size(); ++i) {
    saved[i].empty() ? unsetenv(names[i]) : setenv(names[i], saved[i].c_str(), 1);
  }
}

TEST(Collectives, MatchTheirClosedForms) {
  const auto n = static_cast<std::int64_t>(world().size());
  const auto r = static_cast<std::int64_t>(world().rank());
  std::vector<std::int64_t> counts{1, r};
  all_reduce_sum(world(), std::span(counts));
  EXPECT_THAT(counts, ::testing::ElementsAre(n, n * (n - 1) / 2));
  std::vector<double> extremes{static_cast<double>(r)};
  all_reduce_max(world(), extremes);
  EXPECT_EQ(extremes[0], static_cast<double>(n - 1));
  extremes[0] = static_cast<double>(r);
  all_reduce_min(world(), extremes);
  EXPECT_EQ(extremes[0], 0.0);
  EXPECT_EQ(sum_of_ranks_before(world(), r + 1), r * (r + 1) / 2);
  EXPECT_EQ(broadcast(world(), r == n - 1 ? "last" : "", world().size() - 1), "last");
}

TEST(Collectives, GatherDifferentAmountsInRankOrder) {
  // More than one piece of 4 MiB from the last rank, nothing from rank 0.
  const std::size_t own = static_cast<std::size_t>(world().rank()) * 600'001;
  const std::vector<float> values(own, static_cast<float>(world().rank()));
  const auto all = all_gather(world(), std::span<const float>(values));
  std::size_t at = 0;
  for (int rank = 0; rank < world().size(); ++rank) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(rank) * 600'001; ++i, ++at) {
      if (all.at(at) != static_cast<float>(rank)) ADD_FAILURE() << "value " << at << " is not from rank " << rank;
    }
  }
  EXPECT_EQ(at, all.size());
  const auto texts = all_gather(world(), std::string(static_cast<std::size_t>(world().rank()), 'x'));
  for (std::size_t rank = 0; rank < texts.size(); ++rank) EXPECT_EQ(texts[rank], std::string(rank, 'x'));
}

TEST(Agree, ReturnsTheResultWhenAllSucceed) {
  EXPECT_EQ(agree(world(), [] { return world().rank() + 1; }), world().rank() + 1);
}

TEST(Agree, OneRanksErrorBecomesEveryRanks) {
  const int last = world().size() - 1;
  const auto error = agreed_error_of([&] {
    agree(world(), [&] {
      if (world().rank() == last) throw UseError("data.csv, line 40: 'oops' is no number");
    });
  });
  EXPECT_EQ(error.status(), Status::wrong_use);
  EXPECT_THAT(error.what(), HasSubstr("data.csv, line 40: 'oops' is no number"));
  EXPECT_THAT(error.what(), HasSubstr(last > 0 ? "rank " + std::to_string(last) + " on " + world().host() : ""));
}

TEST(Agree, NamesTheFirstOfSeveralAndCountsTheRest) {
  if (world().size() < 3) GTEST_SKIP() << "needs 3 ranks";
  const auto error = agreed_error_of([&] {
    agree(world(), [&] {
      if (world().rank() > 0) throw std::runtime_error("broken on " + std::to_string(world().rank()));
    });
  });
  EXPECT_EQ(error.status(), Status::failed);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("broken on 1"), HasSubstr("more rank")));
}

TEST(Agree, MemoryThatIsMissingSaysSoAndWhatToDo) {
  const auto error = agreed_error_of([&] { agree(world(), [] { throw std::bad_alloc(); }); });
  EXPECT_EQ(error.status(), Status::failed);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("could not get the memory"), HasSubstr("use fewer ranks")));
}

TEST(Agree, WhatIsWrongEverywhereIsSaidOnceAndOfNoRank) {
  const auto error = agreed_error_of([&] { agree(world(), [] { throw UseError("unknown option '--foo'"); }); });
  EXPECT_STREQ(error.what(), "unknown option '--foo'");
}

TEST(Preflight, EqualFactsPass) {
  EXPECT_NO_THROW(require_agreement(world(), {{"seed", "0"}, {"NCCL", "2.28.9"}}, "differ", "mend"));
}

TEST(Preflight, NamesTheRanksThatDiffer) {
  if (world().size() < 2) GTEST_SKIP() << "needs 2 ranks";
  const bool odd_one = world().rank() == 1;
  const auto error = agreed_error_of([&] {
    require_agreement(world(), {{"seed", "0"}, {"NCCL", odd_one ? "2.27.3" : "2.28.9"}}, "differ", "mend");
  });
  EXPECT_EQ(error.status(), Status::failed);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("NCCL"), HasSubstr("2.27.3"), HasSubstr("on rank 1"), HasSubstr("2.28.9"),
                                  HasSubstr("differ"), HasSubstr("mend")));
  EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("seed")));
}

}  // namespace
}  // namespace ddp
