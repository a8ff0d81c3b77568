#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <linear_ddp/training/trainer.hpp>
#include "metrics.hpp"

namespace ddp::app {

/// What a person reads on stdout and a program in --metrics, from rank 0; other ranks' are made with quiet true and
/// metrics that write nowhere. Whole lines without control characters, flushed.
class Console final : public TrainingObserver {
 public:
  Console(bool quiet, Metrics metrics) : quiet_(quiet), metrics_(std::move(metrics)) {}

  /// How many epochs and steps will be reported, so that a long training prints some 20 lines, not thousands.
  void expect(std::int64_t epochs, std::int64_t steps, double lr);

  /// "model      Linear(10 -> 10), 110 parameters"
  void line(const char* label, const std::string& text);
  void event(const nlohmann::ordered_json& event) { metrics_.write(event); }

  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;

 private:
  [[nodiscard]] static bool shown(std::int64_t number, std::int64_t total);

  bool quiet_;
  Metrics metrics_;
  std::int64_t epochs_ = 1, steps_ = 1, rows_since_epoch_ = 0;
  double lr_ = 0;
};

}  // namespace ddp::app
