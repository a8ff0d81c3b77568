// Graphs, made by capture only. A replay runs the nodes one after another, in an order that is drawn anew each time
// among those that the edges allow: work that an edge is missing for sometimes comes too early.
#include <utility>

#include "runtime.hpp"

struct CUgraph_st {
  std::vector<fakegpu::Node> nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<const std::vector<fakegpu::Node>> nodes;
};

namespace fakegpu {
namespace {

/// The nodes that come before some of `from`, and those themselves.
std::set<std::size_t> ancestors(const std::vector<Node>& nodes, std::set<std::size_t> from) {
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

void replay(const std::vector<Node>& nodes) {
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

std::shared_ptr<Capture>& thread_capture() {
  thread_local std::shared_ptr<Capture> capture;
  return capture;
}

cudaError_t refuse_in_capture() {
  if (thread_capture() == nullptr) return cudaSuccess;
  return thread_capture()->invalid = cudaErrorStreamCaptureUnsupported;
}

}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call(__func__, [&] {
    if (mode != cudaStreamCaptureModeThreadLocal) die("cudaStreamBeginCapture: only the thread-local mode is modelled");
    CUstream_st& queue = checked(stream);
    if (queue.capture != nullptr || thread_capture() != nullptr) return cudaErrorIllegalState;
    queue.capture = thread_capture() = std::make_shared<Capture>();
    queue.capture->origin = stream;
    queue.tail.clear();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call(__func__, [&] {
    const auto& capture = checked(stream).capture;
    *status = capture == nullptr                ? cudaStreamCaptureStatusNone
              : capture->invalid == cudaSuccess ? cudaStreamCaptureStatusActive
                                                : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call(__func__, [&] {
    *graph = nullptr;
    CUstream_st& queue = checked(stream);
    const auto capture = queue.capture;
    if (capture == nullptr || capture->origin != stream) return cudaErrorIllegalState;
    if (capture != thread_capture()) return cudaErrorStreamCaptureWrongThread;
    const bool joined = ancestors(capture->nodes, queue.tail).size() == capture->nodes.size();
    thread_capture() = nullptr;
    end_capture(*capture);
    if (capture->invalid != cudaSuccess) return cudaErrorStreamCaptureInvalidated;
    if (!joined) return cudaErrorStreamCaptureUnjoined;
    *graph = new CUgraph_st{std::move(capture->nodes)};
    count_object("graph", 1);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return call(__func__, [&] {
    if (flags != 0) die("cudaGraphInstantiate: flags are not modelled");
    *executable = new CUgraphExec_st{std::make_shared<const std::vector<Node>>(graph->nodes)};
    count_object("executable graph", 1);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call(__func__, [&] {
    if (checked(stream).capture != nullptr) die("cudaGraphLaunch: graphs within graphs are not modelled");
    return enqueue(stream, "graph", [nodes = executable->nodes] { replay(*nodes); });
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call(__func__, [&] {
    delete executable;
    count_object("executable graph", -1);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call(__func__, [&] {
    delete graph;
    count_object("graph", -1);
    return cudaSuccess;
  });
}
}
