#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <linear_ddp/training/evaluation.hpp>
#include <linear_ddp/training/trainer.hpp>
#include "console.hpp"
#include "lbfgs.hpp"

namespace ddp::app {

/// What a training comes to.
struct Outcome {
  TrainingResult training;
  double train_loss = 0;
  std::size_t head = 0;  ///< the best of --sweep
  std::optional<Scores> train, valid;
  std::int64_t best_epoch = -1;    ///< of the validation
  std::optional<LbfgsFit> search;  ///< of --optimizer lbfgs
  double seconds = 0, penalty = 0;
  std::uint64_t hash = 0;
};

/// What a person reads of it, and the end event.
void report_result(Console& console, const Outcome& outcome, const std::vector<std::string>& target_names);

}  // namespace ddp::app
