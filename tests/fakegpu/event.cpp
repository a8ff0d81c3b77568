#include "runtime.hpp"

namespace fakegpu {

Handles<cudaEvent_t, Event>& events() {
  static auto& handles = *new Handles<cudaEvent_t, Event>("event");
  return handles;
}

}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call(__func__, [&] {
    if ((flags & cudaEventDisableTiming) == 0) die("cudaEventCreateWithFlags: events that are timed are not modelled");
    *event = events().add(std::make_shared<Event>());
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call(__func__, [&] {
    (void)events().take(event, "cudaEventDestroy");
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call(__func__, [&] {
    const auto queue = streams().get(stream, "cudaEventRecord");
    *events().get(event, "cudaEventRecord") = {queue->worker, queue->worker->last(), queue->capture, queue->tail};
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call(__func__, [&] {
    const auto mark = events().get(event, "cudaEventSynchronize");
    if (mark->capture != nullptr) return invalidate(*mark->capture, cudaErrorCapturedEvent);
    if (mark->worker != nullptr && !ignore_this_wait("cudaEventSynchronize", mark->worker->number())) {
      mark->worker->wait(mark->ticket);
    }
    return lost_context();
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call(__func__, [&] {
    const auto mark = events().get(event, "cudaEventQuery");
    if (mark->capture != nullptr) return invalidate(*mark->capture, cudaErrorCapturedEvent);
    return mark->worker == nullptr || mark->worker->is_done(mark->ticket) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call(__func__, [&] {
    if (flags != 0) die("cudaStreamWaitEvent: flags are not modelled");
    const auto queue = streams().get(stream, "cudaStreamWaitEvent");
    const auto mark = events().get(event, "cudaStreamWaitEvent");
    const bool waits = mark->worker != nullptr && mark->worker != queue->worker;
    if (waits && ignore_this_wait("cudaStreamWaitEvent", mark->worker->number())) return cudaSuccess;
    if (mark->capture != nullptr) {
      if (mark->capture->origin == nullptr) return cudaErrorCapturedEvent;
      if (queue->capture != nullptr && queue->capture != mark->capture) {
        return invalidate(*queue->capture, cudaErrorStreamCaptureMerge);
      }
      queue->capture = mark->capture;
      queue->tail.insert(mark->tail.begin(), mark->tail.end());
      return cudaSuccess;
    }
    if (queue->capture != nullptr) return invalidate(*queue->capture, cudaErrorStreamCaptureIsolation);
    if (waits) queue->worker->push([worker = mark->worker, ticket = mark->ticket] { worker->wait(ticket); });
    return cudaSuccess;
  });
}
}
