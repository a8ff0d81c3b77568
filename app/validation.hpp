#pragma once

#include <functional>
#include <limits>
#include <vector>

#include <linear_ddp/launch/watchdog.hpp>
#include <linear_ddp/training/evaluation.hpp>
#include <linear_ddp/training/trainer.hpp>
#include "options.hpp"

namespace ddp::app {

/// --valid, --patience and --save-best: watches the validation loss from epoch to epoch.
class EarlyStopping {
 public:
  /// `evaluate` is collective, and gives every rank the same.
  EarlyStopping(Model& model, const TrainOptions& options, std::function<Scores()> evaluate)
      : model_(model), options_(options), evaluate_(std::move(evaluate)) {}

  Validation operator()(std::int64_t epoch);
  /// The epoch with the best loss, from 0 on; -1 when none was finite.
  [[nodiscard]] std::int64_t best_epoch() const { return best_epoch_; }
  /// With --save-best: the parameters of that epoch.
  void restore_best();

 private:
  Model& model_;
  const TrainOptions& options_;
  std::function<Scores()> evaluate_;
  double best_loss_ = std::numeric_limits<double>::infinity();
  std::int64_t best_epoch_ = -1;
  std::vector<std::vector<float>> best_;
};

}  // namespace ddp::app
