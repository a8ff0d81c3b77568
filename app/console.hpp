#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <linear_ddp/training/trainer.hpp>
#include "metrics.hpp"

namespace ddp::app {

/// To stdout, flushed. Throws Error when it cannot be written (a full disk).
void print_out(const std::string& text);

/// What a person reads on stdout and a program in --metrics, from rank 0; other ranks' are made with quiet true and
/// metrics that write nowhere. Whole lines without control characters, flushed.
class Console final : public TrainingObserver {
 public:
  Console(bool quiet, Metrics metrics) : quiet_(quiet), metrics_(std::move(metrics)) {}

  /// How many epochs and steps will be reported, of so many heads, so that a long training prints some 20 lines, not
  /// thousands, with the best of the heads.
  void expect(std::int64_t epochs, std::int64_t steps, std::int64_t heads);

  /// What a validation's score is: "r2", "accuracy".
  void name_score(std::string name) { score_name_ = std::move(name); }

  /// "model      Linear(10 -> 10), 110 parameters"
  void line(const char* label, const std::string& text);
  void start_event(const nlohmann::ordered_json& event) { metrics_.start(event); }
  void event(const nlohmann::ordered_json& event) { metrics_.write(event); }
  /// The end event of a training that failed.
  void failed(const std::string& message) noexcept;
  /// A report each so many steps makes some 20.
  [[nodiscard]] static std::int64_t stride(std::int64_t total) { return (total + 19) / 20; }

  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;

 private:
  /// Whether report `number` of `total` is one of the some 20 that are shown; not all of them need to come here.
  [[nodiscard]] bool is_due(std::int64_t number, std::int64_t total);

  /// Prints the line of the best head, when `text` is the last head's.
  void show_best(const char* label, const std::string& text, double loss, std::int64_t head);

  bool quiet_;
  Metrics metrics_;
  std::string score_name_ = "score";
  std::int64_t epochs_ = 1, steps_ = 1, heads_ = 1, next_shown_ = 1;
  bool shows_ = false;    // what is reported of the heads
  double best_loss_ = 0;  // of the heads so far
  std::string best_text_;
};

}  // namespace ddp::app
