#pragma once

namespace ddp::app {

/// While it lives, SIGINT and, with a checkpoint to leave, SIGTERM, SIGUSR1 and SIGUSR2 do not end the process but are
/// noted; a second one ends it at once. One that comes within a second of the first is the same, passed on twice (by a
/// launcher and by the batch system). Signals that the process was started to ignore stay ignored. One lives at a time.
class StopSignals {
 public:
  explicit StopSignals(bool leaves_checkpoint);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first that came; 0: none yet.
  [[nodiscard]] int received() const noexcept;

 private:
  bool leaves_checkpoint_;
};

/// "SIGTERM"
[[nodiscard]] const char* name_of_signal(int signal);

}  // namespace ddp::app
