#pragma once

#include <functional>
#include <limits>
#include <vector>

#include <linear_ddp/training/evaluation.hpp>
#include <linear_ddp/training/trainer.hpp>
#include "options.hpp"

namespace ddp::app {

/// --valid, --patience and --save-best: watches each head's validation loss from epoch to epoch.
class EarlyStopping {
 public:
  /// `evaluate` is collective, and gives every rank the same.
  EarlyStopping(Model& model, const TrainOptions& options, std::function<std::vector<Scores>()> evaluate)
      : model_(model),
        options_(options),
        evaluate_(std::move(evaluate)),
        heads_(static_cast<std::size_t>(model.shape().heads)) {}

  /// Of a head that has been stopped, what it was then: it is trained on for the sake of the others.
  std::vector<Validation> operator()(std::int64_t epoch);
  /// The epoch with the best loss, from 0 on; -1 when none was finite.
  [[nodiscard]] std::int64_t best_epoch(std::size_t head) const { return heads_[head].best_epoch; }
  /// Of the parameters that a head ends with.
  [[nodiscard]] Validation validation(std::size_t head) const;
  /// What has been seen so far, as Trainer::exchange does.
  void exchange(Checkpoint& state);
  /// Gives each head the parameters that it ends with: with --save-best those of its best epoch, and those of the epoch
  /// that it was stopped after. Whether that changed any.
  bool restore();

 private:
  struct Head {
    double best_loss = std::numeric_limits<double>::infinity();
    std::int64_t best_epoch = -1;
    Validation best{}, last{};
    std::vector<float> kept{};
  };
  Model& model_;
  const TrainOptions& options_;
  std::function<std::vector<Scores>()> evaluate_;
  std::vector<Head> heads_;
};

}  // namespace ddp::app
