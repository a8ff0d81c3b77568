#include <mutex>

#include "runtime.hpp"

namespace fakegpu {
namespace {

/// Of destroyed streams, which may still have work.
struct ClosedWorkers {
  std::mutex mutex;
  std::vector<std::shared_ptr<Worker>> workers;
};

ClosedWorkers& closed_workers() {
  static auto& closed = *new ClosedWorkers;
  return closed;
}

}  // namespace

Handles<cudaStream_t, Stream>& streams() {
  static auto& handles = *new Handles<cudaStream_t, Stream>("stream");
  return handles;
}

void wait_for_device() {
  std::vector<std::shared_ptr<Worker>> workers;
  {
    const std::lock_guard lock(closed_workers().mutex);
    workers.swap(closed_workers().workers);
  }
  for (const auto& stream : streams().all()) workers.push_back(stream->worker);
  for (const auto& worker : workers) worker->wait(worker->last());
}

cudaError_t enqueue(cudaStream_t stream, const char* what, std::function<void()> work) {
  const auto queue = streams().get(stream, what);
  if (queue->capture == nullptr) {
    queue->worker->push(std::move(work));
    return cudaSuccess;
  }
  auto& nodes = queue->capture->nodes;
  nodes.push_back({std::move(work), queue->tail});
  queue->tail = {nodes.size() - 1};
  return cudaSuccess;
}

bool is_captured(cudaStream_t stream) {
  return streams().get(stream, "cudaStreamIsCapturing")->capture != nullptr;
}

}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/, int /*priority*/) {
  return call(__func__, [&] {
    *stream = streams().add(std::make_shared<Stream>(Stream{Worker::start(), nullptr, {}}));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call(__func__, [&] {
    const auto queue = streams().get(stream, "cudaStreamDestroy");
    if (queue->capture != nullptr) return invalidate(*queue->capture, cudaErrorStreamCaptureUnsupported);
    queue->worker->close();
    {
      const std::lock_guard lock(closed_workers().mutex);
      closed_workers().workers.push_back(queue->worker);
    }
    (void)streams().take(stream, "cudaStreamDestroy");
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call(__func__, [&] {
    const auto queue = streams().get(stream, "cudaStreamSynchronize");
    if (queue->capture != nullptr) return invalidate(*queue->capture, cudaErrorStreamCaptureUnsupported);
    if (!ignore_this_wait("cudaStreamSynchronize", queue->worker->number())) queue->worker->wait(queue->worker->last());
    return lost_context();
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call(__func__, [&] {
    const auto queue = streams().get(stream, "cudaStreamQuery");
    if (queue->capture != nullptr) return invalidate(*queue->capture, cudaErrorStreamCaptureUnsupported);
    return queue->worker->is_done(queue->worker->last()) ? cudaSuccess : cudaErrorNotReady;
  });
}
}
