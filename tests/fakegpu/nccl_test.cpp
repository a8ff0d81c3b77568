// The stand-in for NCCL: what it computes, and that the ranks' mistakes and ends become errors.
#include <gmock/gmock.h>
#include <mpi.h>
#include <nccl.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>

#include "on_stream.hpp"

namespace ddp {
namespace {

using test::DeviceFloats;
using test::Floats;
using test::world;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

class Nccl : public test::OnStream {
 protected:
  /// A non-blocking communicator, and how its making went.
  ncclResult_t join(ncclComm_t& communicator) {
    ncclUniqueId id{};
    EXPECT_EQ(world().rank() == 0 ? ncclGetUniqueId(&id) : ncclSuccess, ncclSuccess);
    MPI_Bcast(id.internal, sizeof(id.internal), MPI_CHAR, 0, world().comm());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    EXPECT_EQ(ncclCommInitRankConfig(&communicator, ranks(), id, world().rank(), &config), ncclInProgress);
    return settled(communicator);
  }
  static ncclResult_t settled(ncclComm_t communicator) {
    ncclResult_t result = ncclInProgress;
    while (result == ncclInProgress) {
      EXPECT_EQ(ncclCommGetAsyncError(communicator, &result), ncclSuccess);
      std::this_thread::sleep_for(100us);
    }
    return result;
  }
  /// Waits for an error, which comes from the stream.
  static ncclResult_t failed(ncclComm_t communicator) {
    ncclResult_t result = ncclSuccess;
    for (int turn = 0; result == ncclSuccess && turn < 10000; ++turn) {
      result = settled(communicator);
      std::this_thread::sleep_for(1ms);
    }
    return result;
  }
  static void leave(ncclComm_t communicator) {
    EXPECT_EQ(ncclCommFinalize(communicator), ncclInProgress);
    EXPECT_EQ(settled(communicator), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(communicator), ncclSuccess);
  }
  static int ranks() { return world().size(); }
};

TEST_F(Nccl, ReducesInEveryWay) {
  ncclComm_t communicator = nullptr;
  ASSERT_EQ(join(communicator), ncclSuccess) << ncclGetLastError(nullptr);
  const auto factorial = [](int of) { return of == 4 ? 24 : of == 3 ? 6 : of; };
  const auto n = static_cast<float>(ranks());
  const std::tuple<ncclRedOp_t, float> cases[] = {{ncclSum, n * (n + 1) / 2},
                                                  {ncclProd, static_cast<float>(factorial(ranks()))},
                                                  {ncclMin, 1.0F},
                                                  {ncclMax, n},
                                                  {ncclAvg, (n + 1) / 2}};
  constexpr std::size_t count = 700'001;  // more than two windows
  for (const auto& [reduction, expected] : cases) {
    DeviceFloats values(Floats(count, static_cast<float>(world().rank() + 1)), stream_);
    ASSERT_EQ(ncclAllReduce(values.data(), values.data(), count, ncclFloat32, reduction, communicator, stream_),
              ncclSuccess);
    EXPECT_EQ(values.values(), Floats(count, expected)) << "reduction " << reduction;
  }
  leave(communicator);
}

TEST_F(Nccl, SumsInTheOrderOfTheRanks) {
  if (ranks() < 3) GTEST_SKIP() << "two numbers have one order";
  ncclComm_t communicator = nullptr;
  ASSERT_EQ(join(communicator), ncclSuccess);
  const int rank = world().rank();
  DeviceFloats value({rank == 0 ? 1.0F : rank == 1 ? 1e8F : rank == 2 ? -1e8F : 0.0F}, stream_);
  ASSERT_EQ(ncclAllReduce(value.data(), value.data(), 1, ncclFloat32, ncclSum, communicator, stream_), ncclSuccess);
  EXPECT_EQ(value.values(), Floats{0}) << "the 1 is lost in 1e8, unless the large ones are added first";
  leave(communicator);
}

TEST_F(Nccl, ACallInProgressIsQueuedByThePollsAfterIt) {
  setenv("LINEAR_DDP_FAKE_NCCL_IN_PROGRESS", "1", 1);
  ncclComm_t communicator = nullptr;
  ASSERT_EQ(join(communicator), ncclSuccess);
  DeviceFloats first({1}, stream_), second({2}, stream_);
  const auto reduce = [&](DeviceFloats& value) {
    return ncclAllReduce(value.data(), value.data(), 1, ncclFloat32, ncclSum, communicator, stream_);
  };
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(reduce(first), ncclSuccess);
  EXPECT_EQ(reduce(second), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  EXPECT_EQ(first.values(), Floats{1}) << "what is not queued has no order among the stream's work";
  EXPECT_EQ(reduce(first), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(communicator), HasSubstr("in progress"));
  EXPECT_EQ(settled(communicator), ncclSuccess);
  EXPECT_EQ(first.values(), Floats{static_cast<float>(ranks())});
  EXPECT_EQ(second.values(), Floats{static_cast<float>(2 * ranks())});
  leave(communicator);
  unsetenv("LINEAR_DDP_FAKE_NCCL_IN_PROGRESS");
}

TEST_F(Nccl, RefusesTypesThatAreNotModelled) {
  ncclComm_t communicator = nullptr;
  ASSERT_EQ(join(communicator), ncclSuccess);
  DeviceFloats values({1}, stream_);
  EXPECT_EQ(ncclAllReduce(values.data(), values.data(), 1, ncclUint32, ncclSum, communicator, stream_),
            ncclInvalidArgument);
  EXPECT_EQ(ncclBroadcast(values.data(), values.data(), 1, ncclFloat32, ranks(), communicator, stream_),
            ncclInvalidArgument);
  leave(communicator);
}

TEST_F(Nccl, RanksThatCallDifferentCollectivesAllGetTheError) {
  if (ranks() == 1) GTEST_SKIP() << "needs peers";
  ncclComm_t communicator = nullptr;
  ASSERT_EQ(join(communicator), ncclSuccess);
  DeviceFloats values(Floats(11, 1), stream_);
  const std::size_t count = world().rank() == 0 ? 10 : 11;
  ASSERT_EQ(ncclAllReduce(values.data(), values.data(), count, ncclFloat32, ncclSum, communicator, stream_),
            ncclSuccess);
  EXPECT_EQ(failed(communicator), ncclInvalidUsage);
  EXPECT_STREQ(ncclGetLastError(communicator),
               "the ranks call different collectives: rank 0 all-reduces 10 float32 (sum), "
               "rank 1 all-reduces 11 float32 (sum)");
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  (void)cudaGetLastError();
  EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
  EXPECT_EQ(values.values(), Floats(11, 1));
}

TEST_F(Nccl, ACollectiveThatOnlySomeRanksCaptureIsAnError) {
  if (ranks() == 1) GTEST_SKIP() << "needs peers";
  ncclComm_t communicator = nullptr;
  ASSERT_EQ(join(communicator), ncclSuccess);
  DeviceFloats values({1}, stream_);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  const bool captures = world().rank() == 0;
  if (captures) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  ASSERT_EQ(ncclAllReduce(values.data(), values.data(), 1, ncclFloat32, ncclSum, communicator, stream_), ncclSuccess);
  if (captures) {
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
    ASSERT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  EXPECT_EQ(failed(communicator), ncclInvalidUsage);
  EXPECT_STREQ(ncclGetLastError(communicator),
               "the ranks call different collectives: rank 0 captured all-reduces 1 float32 (sum), "
               "rank 1 all-reduces 1 float32 (sum)");
  EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
}

TEST_F(Nccl, RefusesTwoRanksOnOneGpuUnlessTheHostsDiffer) {
  if (ranks() == 1) GTEST_SKIP() << "needs peers";
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ncclComm_t communicator = nullptr;
  EXPECT_EQ(join(communicator), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("Duplicate GPU detected"));
  EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
  setenv("NCCL_HOSTID", std::to_string(world().rank()).c_str(), 1);
  EXPECT_EQ(join(communicator), ncclSuccess);
  unsetenv("NCCL_HOSTID");
  leave(communicator);
}

TEST_F(Nccl, PeersOfARankThatAbortedGetAnErrorAndTheirStreamsEndWhenTheyAbortToo) {
  if (ranks() == 1) GTEST_SKIP() << "needs peers";
  ncclComm_t communicator = nullptr;
  ASSERT_EQ(join(communicator), ncclSuccess);
  DeviceFloats values({1}, stream_);
  const int last = ranks() - 1;
  if (world().rank() != last) {
    ASSERT_EQ(ncclAllReduce(values.data(), values.data(), 1, ncclFloat32, ncclSum, communicator, stream_), ncclSuccess);
    EXPECT_EQ(failed(communicator), ncclRemoteError);
    EXPECT_EQ(ncclGetLastError(communicator), "rank " + std::to_string(last) + " aborted its communicator");
    EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
    (void)cudaGetLastError();
  }
  EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
  EXPECT_EQ(values.values(), Floats{1});
}

}  // namespace
}  // namespace ddp
