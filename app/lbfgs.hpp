#pragma once

#include <functional>
#include <string>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/training/evaluation.hpp>
#include <linear_ddp/training/full_batch.hpp>
#include <linear_ddp/training/table_objective.hpp>
#include "console.hpp"
#include "model_file.hpp"
#include "options.hpp"
#include "training_data.hpp"

namespace ddp::app {

/// What L-BFGS works with.
struct LbfgsRun {
  const World& world;
  Device& device;
  ProcessGroup& group;
  Watchdog& watchdog;
  Model& model;
  const TrainingData& data;
  const TrainOptions& options;
  std::int64_t max_iterations;
  double weight;  ///< of all training rows
  double l2;
  std::function<Validation(std::int64_t iteration)> validate;  ///< of a single search; empty: none
  TableObjective* in_float64;                                  ///< what is minimised in place of floats' loss, or null
};

struct LbfgsFit {
  LbfgsResult search;
  double l2;               ///< as given, or chosen from the path
  double loss, penalty;    ///< over all rows, of the parameters where the search ended
  std::int64_t rows_seen;  ///< by all evaluations
  /// In float64 the parameters, of which the model has the nearest floats.
  std::optional<LinearValues> found{};
};

/// Collective. Trains by L-BFGS, from where the model is; with --l2-path by the penalty that is worth most on the rows
/// held out.
[[nodiscard]] LbfgsFit fit_by_lbfgs(const LbfgsRun& run, Console& console);

/// "57 iterations, 63 evaluations, gradient 8.1e-07: converged"
[[nodiscard]] std::string search_in_words(const LbfgsResult& search);

}  // namespace ddp::app
