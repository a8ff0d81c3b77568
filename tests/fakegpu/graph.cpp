// Graphs, made by capture only. A replay runs the nodes one after another, in an order that is drawn anew each time
// among those that the edges allow: work that an edge is missing for sometimes comes too early.
#include <utility>

#include "runtime.hpp"

namespace fakegpu {
namespace {

using Nodes = std::vector<Node>;

Handles<cudaGraph_t, const Nodes>& graphs() {
  static auto& handles = *new Handles<cudaGraph_t, const Nodes>("graph");
  return handles;
}

Handles<cudaGraphExec_t, const Nodes>& executables() {
  static auto& handles = *new Handles<cudaGraphExec_t, const Nodes>("executable graph");
  return handles;
}

/// The nodes that come before some of `from`, and those themselves.
std::set<std::size_t> ancestors(const Nodes& nodes, std::set<std::size_t> from) {
  std::vector<std::size_t> open(from.begin(), from.end());
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    for (const std::size_t earlier : nodes[node].after) {
      if (from.insert(earlier).second) open.push_back(earlier);
    }
  }
  return from;
}

void replay(const Nodes& nodes) {
  std::vector<bool> done(nodes.size(), false);
  for (std::size_t turn = 0; turn < nodes.size(); ++turn) {
    std::vector<std::size_t> ready;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      bool free = !done[node];
      for (const std::size_t earlier : nodes[node].after) free = free && done[earlier];
      if (free) ready.push_back(node);
    }
    const std::size_t node = ready[draw(ready.size())];
    delay();
    nodes[node].work();
    done[node] = true;
  }
}

}  // namespace

cudaError_t invalidate(Capture& capture, cudaError_t status) {
  capture.invalid = status;
  return status;
}

std::shared_ptr<Capture>& thread_capture() {
  thread_local std::shared_ptr<Capture> capture;
  return capture;
}

cudaError_t refuse_in_capture() {
  if (thread_capture() == nullptr) return cudaSuccess;
  return invalidate(*thread_capture(), cudaErrorStreamCaptureUnsupported);
}

}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call(__func__, [&] {
    if (mode != cudaStreamCaptureModeThreadLocal) die("cudaStreamBeginCapture: only the thread-local mode is modelled");
    const auto queue = streams().get(stream, "cudaStreamBeginCapture");
    if (queue->capture != nullptr || thread_capture() != nullptr) return cudaErrorIllegalState;
    queue->capture = thread_capture() = std::make_shared<Capture>();
    queue->capture->origin = stream;
    queue->tail.clear();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call(__func__, [&] {
    const auto& capture = streams().get(stream, "cudaStreamIsCapturing")->capture;
    *status = capture == nullptr                ? cudaStreamCaptureStatusNone
              : capture->invalid == cudaSuccess ? cudaStreamCaptureStatusActive
                                                : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call(__func__, [&] {
    *graph = nullptr;
    const auto queue = streams().get(stream, "cudaStreamEndCapture");
    const auto capture = queue->capture;
    if (capture == nullptr || capture->origin != stream) return cudaErrorIllegalState;
    if (capture != thread_capture()) return cudaErrorStreamCaptureWrongThread;
    const bool joined = ancestors(capture->nodes, queue->tail).size() == capture->nodes.size();
    thread_capture() = nullptr;
    capture->origin = nullptr;
    for (const auto& captured : streams().all()) {
      if (captured->capture == capture) *captured = {captured->worker, nullptr, {}};
    }
    if (capture->invalid != cudaSuccess) return cudaErrorStreamCaptureInvalidated;
    if (!joined) return cudaErrorStreamCaptureUnjoined;
    *graph = graphs().add(std::make_shared<const Nodes>(std::move(capture->nodes)));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return call(__func__, [&] {
    if (flags != 0) die("cudaGraphInstantiate: flags are not modelled");
    *executable = executables().add(graphs().get(graph, "cudaGraphInstantiate"));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call(__func__, [&] {
    if (streams().get(stream, "cudaGraphLaunch")->capture != nullptr)
      die("cudaGraphLaunch: graphs within graphs are not modelled");
    return enqueue(stream, "cudaGraphLaunch",
                   [nodes = executables().get(executable, "cudaGraphLaunch")] { replay(*nodes); });
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call(__func__, [&] {
    (void)executables().take(executable, "cudaGraphExecDestroy");
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call(__func__, [&] {
    (void)graphs().take(graph, "cudaGraphDestroy");
    return cudaSuccess;
  });
}
}
