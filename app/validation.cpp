#include "validation.hpp"

namespace ddp::app {

Validation EarlyStopping::operator()(std::int64_t epoch) {
  const Scores scores = evaluate_();
  if (scores.loss < best_loss_) {
    best_loss_ = scores.loss;
    best_epoch_ = epoch;
    best_.clear();
    for (std::size_t slot = 0; options_.save_best && slot < model_.layout().slots().size(); ++slot) {
      best_.push_back(model_.download(slot));
    }
  }
  return {scores.loss, scores.score(), options_.patience && epoch - best_epoch_ >= *options_.patience};
}

void EarlyStopping::restore_best() {
  for (std::size_t slot = 0; slot < best_.size(); ++slot) model_.upload(slot, best_[slot]);
}

}  // namespace ddp::app
