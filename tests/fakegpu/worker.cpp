// Workers: a thread for each stream, and tickets that count the work it was given and has done.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "runtime.hpp"

namespace fakegpu {

struct Worker::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  Ticket given = 0, done = 0;
  bool closed = false;
  int number = 0;
};

namespace {

/// How fast a worker is.
struct Pace {
  bool is_slow = false, delays = false;
  std::mt19937 random;
};

/// Asked of the environment by the program's thread, which alone may change it.
Pace pace_of(int worker) {
  const char* slow = setting("LINEAR_DDP_FAKE_SLOW_STREAM");
  const char* seed = setting("LINEAR_DDP_FAKE_DELAYS");
  std::seed_seq seeds{seed == nullptr ? 0 : std::atoi(seed), rank(), worker};
  return {slow != nullptr && std::atoi(slow) == worker, seed != nullptr, std::mt19937(seeds)};
}

thread_local Pace pace;

}  // namespace

std::shared_ptr<Worker> Worker::start() {
  auto worker = std::make_shared<Worker>();
  static std::atomic<int> workers = 0;
  worker->state_ = std::make_shared<State>();
  worker->state_->number = ++workers;
  std::thread([state = worker->state_, own = pace_of(worker->state_->number)] {
    pace = own;
    loop(*state);
  }).detach();  // one that hangs must not hold up exit
  return worker;
}

void Worker::loop(State& state) {
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

int Worker::number() const {
  return state_->number;
}

void delay() {
  if (pace.is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (pace.delays && draw(2) == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw(1000)));
}

std::size_t draw(std::size_t bound) {
  return pace.random() % bound;
}

}  // namespace fakegpu
