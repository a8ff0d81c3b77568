#include "console.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace ddp::app {

void Console::expect(std::int64_t epochs, std::int64_t steps, double lr) {
  epochs_ = epochs;
  steps_ = steps;
  lr_ = lr;
}

void Console::line(const char* label, const std::string& text) {
  if (quiet_) return;
  fmt::print("{:<10} {}\n", label, text);
  std::fflush(stdout);
}

bool Console::shown(std::int64_t number, std::int64_t total) {
  constexpr std::int64_t lines = 20;
  const std::int64_t stride = (total + lines - 1) / lines;
  return number == 1 || number == total || number % stride == 0;
}

void Console::on_step(const StepReport& report) {
  metrics_.write({{"event", "step"},
                  {"step", report.step},
                  {"epoch", report.epoch},
                  {"loss", report.loss},
                  {"lr", lr_},
                  {"rows", report.rows}});
  if (steps_ > 0 && shown(report.step, steps_)) line("step", fmt::format("{}  loss {:.7g}", report.step, report.loss));
}

void Console::on_epoch(const EpochReport& report) {
  metrics_.write(
      {{"event", "epoch"}, {"epoch", report.epoch}, {"step", report.step}, {"train_loss", report.train_loss}});
  if (epochs_ > 0 && shown(report.epoch + 1, epochs_)) {
    line("epoch", fmt::format("{}  train loss {:.7g}", report.epoch + 1, report.train_loss));
  }
}

}  // namespace ddp::app
