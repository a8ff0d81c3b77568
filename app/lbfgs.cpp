#include "lbfgs.hpp"

#include <fmt/format.h>

namespace ddp::app {

LbfgsResult fit_by_lbfgs(FullBatchObjective& objective, const TrainOptions& options, const Plan& plan,
                         const TrainerOptions& trainer, Console& console, TrainingResult& training) {
  LbfgsTrainerOptions lbfgs;
  lbfgs.lbfgs.max_iterations = plan.epochs;
  lbfgs.lbfgs.gradient_tolerance = options.tolerance.value_or(1e-6);
  lbfgs.lbfgs.rounding = 1e-7;  // of a mean of float losses
  lbfgs.validate = trainer.validate;
  LbfgsResult result = train_by_lbfgs(objective, lbfgs, console);
  const LbfgsReport& last = result.last;
  training = {last.iteration, last.iteration, last.evaluations * objective.rows(), 0};
  training.last_epoch_loss = last.value - objective.penalty(objective.parameters());
  return result;
}

std::string search_in_words(const LbfgsResult& search) {
  using End = LbfgsResult::End;
  const char* end = search.end == End::gradient     ? "converged"
                    : search.end == End::iterations ? "not converged; more --epochs take it further"
                    : search.end == End::asked      ? "ended by --patience"
                                                    : "converged to the rounding of the loss";
  return fmt::format("{} iteration{}, {} evaluations, gradient {:.2g}: {}", search.last.iteration,
                     search.last.iteration == 1 ? "" : "s", search.last.evaluations, search.last.gradient_norm, end);
}

}  // namespace ddp::app
