// Fails on rank 1 alone, in two ways; tests/cli/mpi_main_test.cpp looks at how the job ends.
#include <gtest/gtest.h>
#include <mpi.h>

#include "support/mpi_test_world.hpp"

namespace ddp::test {
namespace {

TEST(OneRank, ExpectsInVain) {
  EXPECT_NE(world().rank(), 1) << "expected failure";
}

TEST(OneRank, FailsWhileItsPeersSkip) {
  if (world().rank() != 1) GTEST_SKIP() << "as without a GPU";
  ADD_FAILURE() << "expected failure";
}

TEST(OneRank, AssertsInVainWhileItsPeersWait) {
  ASSERT_NE(world().rank(), 1) << "expected failure";
  MPI_Barrier(world().comm());
}

}  // namespace
}  // namespace ddp::test
