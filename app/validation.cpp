#include "validation.hpp"

#include <fmt/format.h>

#include <linear_ddp/base/error.hpp>

namespace ddp::app {

std::vector<Validation> EarlyStopping::operator()(std::int64_t epoch) {
  const std::vector<Scores> scores = evaluate_();
  std::vector<Validation> validations;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    Head& head = heads_[i];
    if (!head.last.stops) {
      const auto parameters = [&] { return model_.download_head(static_cast<std::int64_t>(i)); };
      const double loss = scores[i].loss, score = scores[i].score();
      if (loss < head.best_loss) {
        head.best_loss = loss;
        head.best_epoch = epoch;
        head.best = {loss, score};
        if (options_.save_best) head.kept = parameters();
      }
      head.last = {loss, score, options_.patience && epoch - head.best_epoch >= *options_.patience};
      if (head.last.stops && !options_.save_best && heads_.size() > 1) head.kept = parameters();
    }
    validations.push_back(head.last);
  }
  return validations;
}

void EarlyStopping::exchange(Checkpoint& state) {
  const auto parameters = static_cast<std::size_t>(model_.layout().parameters() / model_.shape().heads);
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    Head& head = heads_[i];
    const auto name = [i](const char* what) { return fmt::format("validation.{}.{}", i, what); };
    std::vector<double> numbers{head.best_loss, head.best.loss, head.best.score, head.last.loss, head.last.score};
    state.exchange(name("losses"), numbers, 5);
    if (numbers.size() != 5) throw UseError("the checkpoint has no losses of --valid");
    head.best_loss = numbers[0];
    head.best = {numbers[1], numbers[2]};
    head.last = {numbers[3], numbers[4], head.last.stops};
    state.exchange(name("best_epoch"), head.best_epoch);
    state.exchange(name("stops"), head.last.stops);
    state.exchange(name("kept"), head.kept, parameters);
  }
}

Validation EarlyStopping::validation(std::size_t head) const {
  return options_.save_best && heads_[head].best_epoch >= 0 ? heads_[head].best : heads_[head].last;
}

bool EarlyStopping::restore() {
  bool changed = false;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    if (heads_[i].kept.empty()) continue;
    model_.upload_head(static_cast<std::int64_t>(i), heads_[i].kept);
    changed = true;
  }
  return changed;
}

}  // namespace ddp::app
