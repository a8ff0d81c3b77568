#include "validation.hpp"

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
