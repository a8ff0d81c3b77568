#include "console.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include <linear_ddp/base/error.hpp>

namespace ddp::app {

void print_out(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    fail_errno("write to standard output");
  }
}

void Console::expect(std::int64_t epochs, std::int64_t steps, std::int64_t heads) {
  epochs_ = epochs;
  steps_ = steps;
  heads_ = heads;
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

void Console::show_best(const char* label, const std::string& text, double loss, std::int64_t head) {
  if (head == 0 || loss < best_loss_ || std::isnan(best_loss_)) {
    best_loss_ = loss;
    best_text_ = heads_ == 1 ? text : fmt::format("{}  (head {}, the best of {})", text, head, heads_);
  }
  if (head + 1 == heads_) line(label, best_text_);
}

void Console::on_step(const StepReport& report) {
  nlohmann::ordered_json event{{"event", "step"},     {"step", report.step}, {"epoch", report.epoch},
                               {"loss", report.loss}, {"lr", report.lr},     {"rows", report.rows}};
  if (heads_ > 1) event["head"] = report.head;
  metrics_.write(event);
  if (report.head == 0) shows_ = steps_ > 0 && is_due(report.step, steps_);
  if (!shows_) return;
  show_best("step", fmt::format("{}  loss {:.7g}", report.step, report.loss), static_cast<double>(report.loss),
            report.head);
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
  if (heads_ > 1) event["head"] = report.head;
  metrics_.write(event);
  if (report.head == 0) shows_ = epochs_ > 0 && is_due(report.epoch + 1, epochs_);
  if (!shows_) return;
  show_best("epoch", text, report.validation ? report.validation->loss : report.train_loss, report.head);
}

}  // namespace ddp::app
