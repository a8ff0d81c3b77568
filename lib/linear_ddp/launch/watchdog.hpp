#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace ddp {

/// Longer ones count as this: a year. (Clocks overflow beyond some.)
inline constexpr std::chrono::hours longest_timeout{24 * 365};

/// Notices a collective that takes longer than the time-out. The training thread only stores to atomics; the watchdog's
/// own thread measures the time, by looking several times within each time-out whether the same collective is still on.
class Watchdog {
 public:
  /// Called once, from the watchdog's thread, with the report: which collective, how long, what to try. It is expected
  /// to end the process (the rank's own thread is blocked).
  using OnTimeout = std::function<void(const std::string& report)>;

  /// No thread and no time-out: for tests and for callers who watch by themselves.
  Watchdog() = default;
  Watchdog(std::chrono::milliseconds timeout, OnTimeout on_timeout);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Marks one collective for as long as it lives. `what` is a literal: "all-reduce". Inside another one it takes that
  /// one's place, whose time starts anew when it ends.
  class Watch {
   public:
    Watch(Watchdog& watchdog, const char* what, std::size_t bytes) noexcept
        : watchdog_(watchdog),
          outer_what_(watchdog.what_.load(std::memory_order_relaxed)),
          outer_bytes_(watchdog.bytes_.load(std::memory_order_relaxed)),
          step_(watchdog.state_.load(std::memory_order_relaxed) % 2 + 1) {
      if (step_ == 1)
        watchdog_.number_.store(watchdog_.number_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      watchdog_.advance(what, bytes, step_);
    }
    ~Watch() { watchdog_.advance(outer_what_, outer_bytes_, step_); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Watchdog& watchdog_;
    const char* outer_what_;
    std::size_t outer_bytes_;
    std::uint64_t step_;  // 2 inside another one: the state changes and stays odd
  };

 private:
  /// Only the training thread writes the state, so no atomic read-modify-write is needed.
  void advance(const char* what, std::size_t bytes, std::uint64_t step) noexcept {
    what_.store(what, std::memory_order_relaxed);
    bytes_.store(bytes, std::memory_order_relaxed);
    state_.store(state_.load(std::memory_order_relaxed) + step, std::memory_order_release);
  }
  void run(std::chrono::milliseconds timeout, const OnTimeout& on_timeout);

  std::atomic<std::uint64_t> state_{0};   // odd while a collective is on, and another one for each
  std::atomic<std::uint64_t> number_{0};  // of collectives until now, those inside others not counted
  std::atomic<const char*> what_{""};
  std::atomic<std::size_t> bytes_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ddp
