#include <linear_ddp/launch/watchdog.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace ddp {

Watchdog::Watchdog(std::chrono::milliseconds timeout, OnTimeout on_timeout)
    : thread_([this, timeout = std::min<std::chrono::milliseconds>(timeout, longest_timeout),
               report = std::move(on_timeout)] { run(timeout, report); }) {}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::run(std::chrono::milliseconds timeout, const OnTimeout& on_timeout) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t seen = 0;
  Clock::time_point since = Clock::now();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, timeout / 8, [this] { return stop_; })) {
    const std::uint64_t state = state_.load(std::memory_order_acquire);
    if (state != seen || state % 2 == 0) {
      seen = state;
      since = Clock::now();
    } else if (const auto waited = Clock::now() - since; waited >= timeout) {
      const std::size_t bytes = bytes_.load(std::memory_order_relaxed);
      on_timeout(fmt::format(
          "{} number {}{} has not ended for {:.0f} s (--timeout {:.0f}): a peer died, hangs, or calls another "
          "collective; look for other ranks' messages, or raise --timeout if a rank may take that long",
          what_.load(std::memory_order_relaxed), number_.load(std::memory_order_relaxed),
          bytes == 0 ? "" : fmt::format(" of {} bytes", bytes), std::chrono::duration<double>(waited).count(),
          std::chrono::duration<double>(timeout).count()));
      return;
    }
  }
}

}  // namespace ddp
