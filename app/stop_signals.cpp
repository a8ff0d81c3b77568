#include "stop_signals.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <span>

namespace ddp::app {
namespace {

constexpr int all_signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

std::span<const int> signals_of(bool leaves_checkpoint) {
  return std::span(all_signals).first(leaves_checkpoint ? std::size(all_signals) : 1);
}

// All that a handler may touch.
std::atomic<int> first_signal{0};
std::atomic<std::int64_t> first_time{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

extern "C" void on_signal(int signal) {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  constexpr std::int64_t second = 1'000'000'000;
  const std::int64_t now = time.tv_sec * second + time.tv_nsec;
  std::int64_t first = 0;
  if (first_time.compare_exchange_strong(first, now)) {
    first_signal.store(signal);
  } else if (now - first > second) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // comes when this returns
  }
}

}  // namespace

StopSignals::StopSignals(bool leaves_checkpoint) : leaves_checkpoint_(leaves_checkpoint) {
  first_signal.store(0);
  first_time.store(0);
  for (const int signal : signals_of(leaves_checkpoint_)) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (const int signal : signals_of(leaves_checkpoint_)) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler == on_signal) std::signal(signal, SIG_DFL);
  }
}

int StopSignals::received() const noexcept {
  return first_signal.load(std::memory_order_relaxed);
}

const char* name_of_signal(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "SIGUSR2";
  }
}

}  // namespace ddp::app
