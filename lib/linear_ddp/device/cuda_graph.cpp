#include <linear_ddp/device/cuda_graph.hpp>

#include <linear_ddp/device/cuda_handle.hpp>

namespace ddp {
namespace {

using CudaGraph = CudaHandle<cudaGraph_t, cudaGraphDestroy>;
using CudaGraphExec = CudaHandle<cudaGraphExec_t, cudaGraphExecDestroy>;

class CudaRecording final : public Recording {
 public:
  CudaRecording(cudaStream_t stream, CudaGraphExec graph) : stream_(stream), graph_(std::move(graph)) {}
  void replay() override { check(cudaGraphLaunch(graph_.get(), stream_), "launch the graph of a step"); }

 private:
  cudaStream_t stream_;
  CudaGraphExec graph_;
};

CudaGraph end_capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "end the recording of a step");
  return CudaGraph(graph);
}

}  // namespace

std::unique_ptr<Recording> capture_cuda_graph(cudaStream_t stream, const std::function<void()>& work) {
  // Thread-local: NCCL's own threads may make calls meanwhile that a global capture forbids.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin to record a step");
  try {
    work();
  } catch (...) {
    cudaGraph_t half = nullptr;
    cudaStreamEndCapture(stream, &half);  // its error says no more than the one on its way
    const CudaGraph drop(half);
    throw;
  }
  const CudaGraph graph = end_capture(stream);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph.get(), 0), "make the graph of a step ready");
  return std::make_unique<CudaRecording>(stream, CudaGraphExec(executable));
}

}  // namespace ddp
