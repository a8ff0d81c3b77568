// What the stand-in for the CUDA runtime must show that real hardware may hide: wrong accesses, and missing waits.
#include <cmath>
#include <csignal>

#include "cuda_program.hpp"
#include "kernels/columns.hpp"

namespace ddp::test {
namespace {

TEST(Memory, OfTheDeviceIsNotTheHosts) {
  EXPECT_EXIT(run({}, [] { return static_cast<int>(*static_cast<volatile float*>(device_array<float>(1))); }),
              KilledBySignal(SIGSEGV), "");
}

TEST(Memory, BeginsAsNan) {
  EXPECT_EXIT(run({},
                  [] {
                    float value = 0;
                    check(cudaMemcpyAsync(&value, device_array<float>(1), 4, cudaMemcpyDeviceToHost, make_stream()));
                    return std::isnan(value) ? 0 : 1;
                  }),
              ExitedWithCode(0), "");
}

int fill(std::int64_t rows, float* row, float* values) {
  cudaStream_t stream = make_stream();
  check(cudaMemsetAsync(row, 0, 64 * sizeof(float), stream));
  check(kernels::fill_rows(rows, 64, row, values, stream));
  check(cudaStreamSynchronize(stream));
  return 0;
}

TEST(Memory, CannotBeLeftByAKernel) {
  EXPECT_EXIT(run({}, [] { return fill(2, device_array<float>(64), device_array<float>(2 * 64)); }), ExitedWithCode(0),
              "");
  EXPECT_EXIT(run({}, [] { return fill(2, device_array<float>(64), device_array<float>(64)); }),
              KilledBySignal(SIGSEGV), "");
}

TEST(Memory, OverrunWithinTheAlignmentIsSeenAtItsRelease) {
  EXPECT_EXIT(run({},
                  [] {
                    float* values = device_array<float>(63);
                    fill(1, device_array<float>(64), values);
                    return static_cast<int>(cudaFree(values));
                  }),
              KilledBySignal(SIGABRT), "written just outside an allocation of 252 bytes");
}

TEST(Memory, CannotBeUsedAfterItsRelease) {
  EXPECT_EXIT(run({},
                  [] {
                    float* values = device_array<float>(64);
                    check(cudaFree(values));
                    (void)device_array<float>(64);
                    return fill(1, device_array<float>(64), values);
                  }),
              KilledBySignal(SIGSEGV), "");
}

/// One stream counts to many, another hands the result to the host.
int count_across_streams() {
  Counter counter;
  counter.add(many, counter.stream);
  cudaStream_t other = make_stream();
  order(counter.stream, other);  // the first wait
  double* result = pinned(-1.0);
  check(cudaMemcpyAsync(result, counter.sum, sizeof(double), cudaMemcpyDeviceToHost, other));
  check(cudaStreamSynchronize(other));  // the second wait
  return *result == many ? 0 : 1;
}

TEST(Waits, GiveTheRightResultUnlessOneIsMissing) {
  EXPECT_EXIT(run({delays}, count_across_streams), ExitedWithCode(0), "");
  EXPECT_EXIT(run({delays, {"LINEAR_DDP_FAKE_IGNORE_WAIT", "1"}}, count_across_streams), ExitedWithCode(1),
              "wait 1 is ignored: cudaStreamWaitEvent, for stream 1");
  EXPECT_EXIT(run({delays, {"LINEAR_DDP_FAKE_IGNORE_WAIT", "2"}}, count_across_streams), ExitedWithCode(1),
              "wait 2 is ignored: cudaStreamSynchronize, for stream 2");
}

/// What is added to many: 1, or 2 when the copy reads its source after the call.
int copy_and_change(float* source) {
  Counter counter;
  counter.add(many, counter.stream);
  check(cudaMemcpyAsync(counter.one, source, sizeof(float), cudaMemcpyHostToDevice, counter.stream));
  *source = 2;
  counter.add(1, counter.stream);
  return counter.value() - many;
}

TEST(Copies, ReadPinnedMemoryWhenTheyRun) {
  EXPECT_EXIT(run({delays}, [] { return copy_and_change(pinned(1.0F)); }), ExitedWithCode(2), "");
}

TEST(Copies, ReadPageableMemoryAtTheCallOrLater) {
  const auto program = [] { return copy_and_change(new float(1)); };
  EXPECT_EXIT(run({delays}, program), ExitedWithCode(1), "");
  EXPECT_EXIT(run({delays, {"LINEAR_DDP_FAKE_PAGEABLE", "late"}}, program), ExitedWithCode(2), "");
}

TEST(Copies, ToPageableMemoryMayReturnBeforeTheyRun) {
  EXPECT_EXIT(run({delays, {"LINEAR_DDP_FAKE_PAGEABLE", "late"}},
                  [] {
                    Counter counter;
                    counter.add(many, counter.stream);
                    auto* result = new double(-1);
                    check(cudaMemcpyAsync(result, counter.sum, 8, cudaMemcpyDeviceToHost, counter.stream));
                    const bool too_early = *result == -1;
                    check(cudaStreamSynchronize(counter.stream));
                    return too_early && *result == many ? 0 : 1;
                  }),
              ExitedWithCode(0), "");
}

TEST(Copies, ToPageableMemoryReturnWhenDoneAndToPinnedMemoryBefore) {
  EXPECT_EXIT(run({delays},
                  [] {
                    Counter counter;
                    counter.add(many, counter.stream);
                    double* result = pinned(-1.0);
                    check(cudaMemcpyAsync(result, counter.sum, 8, cudaMemcpyDeviceToHost, counter.stream));
                    const bool too_early = *result == -1;
                    return too_early && counter.value() == many ? 0 : 1;
                  }),
              ExitedWithCode(0), "");
}

/// One stream sets the number to zero, the other adds 2, after that only when `ordered`; then the first adds 1.
cudaGraphExec_t capture(Counter& counter, cudaStream_t other, bool ordered) {
  check(cudaStreamBeginCapture(counter.stream, cudaStreamCaptureModeThreadLocal));
  if (!ordered) order(counter.stream, other);
  check(cudaMemsetAsync(counter.sum, 0, sizeof(double), counter.stream));
  if (ordered) order(counter.stream, other);
  counter.add(2, other);
  order(other, counter.stream);
  counter.add(1, counter.stream);
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(counter.stream, &graph));
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0));
  return executable;
}

int right_replays(bool ordered) {
  Counter counter;
  cudaGraphExec_t graph = capture(counter, make_stream(), ordered);
  if (counter.value() != 0) return 100;  // capturing runs nothing
  int right = 0;
  for (int replay = 0; replay < 32; ++replay) {
    check(cudaGraphLaunch(graph, counter.stream));
    if (counter.value() == 3) ++right;
  }
  return right;
}

TEST(Graphs, ReplayAcrossStreamsUnlessAnEdgeIsMissing) {
  EXPECT_EXIT(run({}, [] { return right_replays(true); }), ExitedWithCode(32), "");
  EXPECT_EXIT(run({}, [] { return right_replays(false) < 32 ? 0 : 1; }), ExitedWithCode(0), "");
}

TEST(Graphs, RefuseWhatCudaRefusesInACapture) {
  EXPECT_EXIT(run({},
                  [] {
                    cudaStream_t stream = make_stream();
                    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
                    void* memory = nullptr;
                    const bool refused = cudaMalloc(&memory, 4) == cudaErrorStreamCaptureUnsupported;
                    cudaGraph_t graph = nullptr;
                    const cudaError_t end = cudaStreamEndCapture(stream, &graph);
                    return refused && end == cudaErrorStreamCaptureInvalidated ? 0 : 1;
                  }),
              ExitedWithCode(0), "");
}

TEST(Graphs, MustJoinTheirStreams) {
  EXPECT_EXIT(run({},
                  [] {
                    Counter counter;
                    check(cudaStreamBeginCapture(counter.stream, cudaStreamCaptureModeThreadLocal));
                    cudaStream_t other = make_stream();
                    order(counter.stream, other);
                    counter.add(1, other);
                    cudaGraph_t graph = nullptr;
                    return cudaStreamEndCapture(counter.stream, &graph) == cudaErrorStreamCaptureUnjoined ? 0 : 1;
                  }),
              ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ddp::test

int main(int argc, char** argv) {
  return ddp::test::run_programs(argc, argv);
}
