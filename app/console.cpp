#include "console.hpp"

#include <fmt/format.h>

#include <cstdio>

#include <linear_ddp/base/error.hpp>

namespace ddp::app {

void print_out(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    fail_errno("write to standard output");
  }
}

void Console::expect(std::int64_t epochs, std::int64_t steps) {
  epochs_ = epochs;
  steps_ = steps;
}

void Console::line(const char* label, const std::string& text) {
  if (!quiet_) print_out(fmt::format("{:<10} {}\n", label, text));
}

void Console::failed(const std::string& message) noexcept {
  try {
    metrics_.write_failure({{"event", "end"}, {"status", "error"}, {"message", message}});
  } catch (const std::exception&) {
    // The failure under way is the one to tell.
  }
}

bool Console::is_due(std::int64_t number, std::int64_t total) {
  if (number < next_shown_ && number != total) return false;
  next_shown_ = number - number % stride(total) + stride(total);
  return true;
}

void Console::on_step(const StepReport& report) {
  metrics_.write({{"event", "step"},
                  {"step", report.step},
                  {"epoch", report.epoch},
                  {"loss", report.loss},
                  {"lr", report.lr},
                  {"rows", report.rows}});
  if (steps_ > 0 && is_due(report.step, steps_)) line("step", fmt::format("{}  loss {:.7g}", report.step, report.loss));
}

void Console::on_epoch(const EpochReport& report) {
  nlohmann::ordered_json event{{"event", "epoch"},
                               {"epoch", report.epoch},
                               {"step", report.step},
                               {"lr", report.lr},
                               {"train_loss", report.train_loss}};
  std::string text = fmt::format("{}  train loss {:.7g}", report.epoch + 1, report.train_loss);
  if (report.validation) {
    event["valid_loss"] = report.validation->loss;
    event["valid_" + score_name_] = report.validation->score;
    text += fmt::format("  validation loss {:.7g}, {} {:.7g}", report.validation->loss, score_name_,
                        report.validation->score);
  }
  metrics_.write(event);
  if (epochs_ > 0 && is_due(report.epoch + 1, epochs_)) line("epoch", text);
}

}  // namespace ddp::app
