// Streams and events: a thread for each stream, and tickets that count the work it was given and has done.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "runtime.hpp"

namespace fakegpu {

struct Worker::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  Ticket given = 0, done = 0;
  bool closed = false;
};

namespace {

thread_local std::mt19937 random_of_thread;  // NOLINT: seeded by the worker's thread

void seed_thread() {
  static std::atomic<unsigned> workers = 0;
  const char* seed = setting("LINEAR_DDP_FAKE_DELAYS");
  std::seed_seq seeds{seed == nullptr ? 0 : std::atoi(seed), rank(), static_cast<int>(workers++)};
  random_of_thread.seed(seeds);
}

/// The handles that are alive; others end the process, as their use is undefined.
template <class Object>
class Handles {
 public:
  Object* make(Object object) {
    const std::lock_guard lock(mutex_);
    return *live_.insert(new Object(std::move(object))).first;
  }
  Object& checked(Object* handle, const char* kind) {
    const std::lock_guard lock(mutex_);
    if (live_.count(handle) == 0) die(std::string("use of a ") + kind + " that does not exist, or of the default one");
    return *handle;
  }
  void release(Object* handle) {
    const std::lock_guard lock(mutex_);
    live_.erase(handle);
    delete handle;
  }
  template <class Action>
  void for_each(const Action& action) {
    const std::lock_guard lock(mutex_);
    for (Object* object : live_) action(*object);
  }

 private:
  std::mutex mutex_;
  std::set<Object*> live_;
};

Handles<CUstream_st>& streams() {
  static auto& handles = *new Handles<CUstream_st>;
  return handles;
}

Handles<CUevent_st>& events() {
  static auto& handles = *new Handles<CUevent_st>;
  return handles;
}

/// Of destroyed streams, which may still have work.
struct ClosedWorkers {
  std::mutex mutex;
  std::vector<std::shared_ptr<Worker>> workers;
};

ClosedWorkers& closed_workers() {
  static auto& closed = *new ClosedWorkers;
  return closed;
}

cudaError_t invalidate(Capture& capture, cudaError_t status) {
  capture.invalid = status;
  return status;
}

}  // namespace

std::shared_ptr<Worker> Worker::start() {
  auto worker = std::make_shared<Worker>();
  worker->state_ = std::make_shared<State>();
  std::thread([state = worker->state_] { loop(*state); }).detach();  // one that hangs must not hold up exit
  return worker;
}

void Worker::loop(State& state) {
  seed_thread();
  for (;;) {
    std::unique_lock lock(state.mutex);
    state.changed.wait(lock, [&] { return state.closed || !state.queue.empty(); });
    if (state.queue.empty()) return;
    auto work = std::move(state.queue.front());
    state.queue.pop_front();
    lock.unlock();
    delay();
    if (lost_context() == cudaSuccess) work();
    work = nullptr;
    lock.lock();
    ++state.done;
    state.changed.notify_all();
  }
}

Ticket Worker::push(std::function<void()> work) {
  const std::lock_guard lock(state_->mutex);
  state_->queue.push_back(std::move(work));
  state_->changed.notify_all();
  return ++state_->given;
}

Ticket Worker::last() const {
  const std::lock_guard lock(state_->mutex);
  return state_->given;
}

bool Worker::is_done(Ticket ticket) const {
  const std::lock_guard lock(state_->mutex);
  return state_->done >= ticket;
}

void Worker::wait(Ticket ticket) const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->done >= ticket; });
}

void Worker::close() {
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
  state_->changed.notify_all();
}

void delay() {
  static const bool wanted = setting("LINEAR_DDP_FAKE_DELAYS") != nullptr;
  if (wanted && draw(2) == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw(1000)));
}

std::size_t draw(std::size_t bound) {
  return random_of_thread() % bound;
}

CUstream_st& checked(cudaStream_t stream) {
  return streams().checked(stream, "stream");
}

CUevent_st& checked(cudaEvent_t event) {
  return events().checked(event, "event");
}

void wait_for_device() {
  std::vector<std::shared_ptr<Worker>> workers;
  {
    const std::lock_guard lock(closed_workers().mutex);
    workers.swap(closed_workers().workers);
  }
  streams().for_each([&](const CUstream_st& stream) { workers.push_back(stream.worker); });
  for (const auto& worker : workers) worker->wait(worker->last());
}

void end_capture(const Capture& capture) {
  streams().for_each([&](CUstream_st& stream) {
    if (stream.capture.get() != &capture) return;
    stream.capture = nullptr;
    stream.tail.clear();
  });
}

cudaError_t enqueue(cudaStream_t stream, const char* /*what*/, std::function<void()> work) {
  CUstream_st& queue = checked(stream);
  if (queue.capture == nullptr) {
    queue.worker->push(std::move(work));
    return cudaSuccess;
  }
  auto& nodes = queue.capture->nodes;
  nodes.push_back({std::move(work), queue.tail});
  queue.tail = {nodes.size() - 1};
  return cudaSuccess;
}

}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/, int /*priority*/) {
  return call(__func__, [&] {
    *stream = streams().make({Worker::start(), nullptr, {}});
    count_object("stream", 1);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call(__func__, [&] {
    CUstream_st& queue = checked(stream);
    if (queue.capture != nullptr) return invalidate(*queue.capture, cudaErrorStreamCaptureUnsupported);
    queue.worker->close();
    {
      const std::lock_guard lock(closed_workers().mutex);
      closed_workers().workers.push_back(queue.worker);
    }
    streams().release(stream);
    count_object("stream", -1);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call(__func__, [&] {
    const CUstream_st& queue = checked(stream);
    if (queue.capture != nullptr) return invalidate(*queue.capture, cudaErrorStreamCaptureUnsupported);
    if (!ignore_this_wait("cudaStreamSynchronize")) queue.worker->wait(queue.worker->last());
    return lost_context();
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call(__func__, [&] {
    const CUstream_st& queue = checked(stream);
    if (queue.capture != nullptr) return invalidate(*queue.capture, cudaErrorStreamCaptureUnsupported);
    return queue.worker->is_done(queue.worker->last()) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call(__func__, [&] {
    if ((flags & cudaEventDisableTiming) == 0) die("cudaEventCreateWithFlags: events that are timed are not modelled");
    *event = events().make({});
    count_object("event", 1);
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call(__func__, [&] {
    (void)checked(event);
    events().release(event);
    count_object("event", -1);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call(__func__, [&] {
    const CUstream_st& queue = checked(stream);
    checked(event) = {queue.worker, queue.worker->last(), queue.capture, queue.tail};
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call(__func__, [&] {
    const CUevent_st& mark = checked(event);
    if (mark.capture != nullptr) return invalidate(*mark.capture, cudaErrorCapturedEvent);
    if (mark.worker != nullptr && !ignore_this_wait("cudaEventSynchronize")) mark.worker->wait(mark.ticket);
    return lost_context();
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call(__func__, [&] {
    const CUevent_st& mark = checked(event);
    if (mark.capture != nullptr) return invalidate(*mark.capture, cudaErrorCapturedEvent);
    return mark.worker == nullptr || mark.worker->is_done(mark.ticket) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call(__func__, [&] {
    if (flags != 0) die("cudaStreamWaitEvent: flags are not modelled");
    CUstream_st& queue = checked(stream);
    const CUevent_st& mark = checked(event);
    if (ignore_this_wait("cudaStreamWaitEvent")) return cudaSuccess;
    if (mark.capture != nullptr) {
      if (queue.capture != nullptr && queue.capture != mark.capture) {
        return invalidate(*queue.capture, cudaErrorStreamCaptureMerge);
      }
      queue.capture = mark.capture;
      queue.tail.insert(mark.tail.begin(), mark.tail.end());
      return cudaSuccess;
    }
    if (queue.capture != nullptr) return invalidate(*queue.capture, cudaErrorStreamCaptureIsolation);
    if (mark.worker == nullptr || mark.worker == queue.worker) return cudaSuccess;
    queue.worker->push([worker = mark.worker, ticket = mark.ticket] { worker->wait(ticket); });
    return cudaSuccess;
  });
}
}
