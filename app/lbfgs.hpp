#pragma once

#include <string>

#include <linear_ddp/training/full_batch.hpp>
#include "console.hpp"
#include "options.hpp"
#include "plan.hpp"

namespace ddp::app {

/// Collective. Trains by L-BFGS, from where the model is.
[[nodiscard]] LbfgsResult fit_by_lbfgs(FullBatchObjective& objective, const TrainOptions& options, const Plan& plan,
                                       const TrainerOptions& trainer, Console& console, TrainingResult& training);

/// "57 iterations, 63 evaluations, gradient 8.1e-07: converged"
[[nodiscard]] std::string search_in_words(const LbfgsResult& search);

}  // namespace ddp::app
