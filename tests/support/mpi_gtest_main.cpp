// main for tests under mpiexec: every rank runs every test, and the run fails on all ranks when it fails on any of
// them.
#include <gtest/gtest.h>
#include <mpi.h>

#include <iostream>
#include <sstream>

#include "support/mpi_test_world.hpp"

namespace ddp::test {
namespace {

const World* the_world = nullptr;

/// Rank 0 prints as usual; the others print only what failed, in one write a failure. A fatal failure aborts the job:
/// the peers may already wait in a collective that this rank will never reach.
class FailureListener : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    if (world().rank() != 0) {
      std::ostringstream line;
      line << "rank " << world().rank() << ": " << (result.file_name() ? result.file_name() : "?") << ":"
           << result.line_number() << ": " << result.summary() << "\n";
      std::cerr << line.str() << std::flush;
    }
    if (result.fatally_failed()) MPI_Abort(MPI_COMM_WORLD, 1);
  }
};

/// Ranks that fail without a word would leave a test that passed on rank 0.
int worst_of_all_ranks(int status) {
  MPI_Allreduce(MPI_IN_PLACE, &status, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return status;
}

}  // namespace

const World& world() {
  return *the_world;
}

}  // namespace ddp::test

int main(int argc, char** argv) {
  const ddp::World world;
  ddp::test::the_world = &world;
  ::testing::InitGoogleTest(&argc, argv);
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (world.rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new ddp::test::FailureListener);
  const int status = ddp::test::worst_of_all_ranks(RUN_ALL_TESTS());
  const auto& results = *::testing::UnitTest::GetInstance();
  if (status == 0 && world.rank() == 0 && results.test_to_run_count() > 0 &&
      results.skipped_test_count() == results.test_to_run_count()) {
    std::cout << "ALL TESTS SKIPPED" << std::endl;
  }
  return status;
}
