#include "outcome.hpp"

#include <fmt/format.h>

#include "scores.hpp"

namespace ddp::app {

void report_result(Console& console, const Outcome& outcome, const std::vector<std::string>& target_names) {
  const TrainingResult& result = outcome.training;
  const double rows_per_s = static_cast<double>(result.rows) / outcome.seconds;
  if (outcome.search) console.line("search", search_in_words(outcome.search->search));
  console.line("result", fmt::format("train loss {:.7g} after {} step{}, {:.3g} s ({:.3g} rows/s)", outcome.train_loss,
                                     result.steps, result.steps == 1 ? "" : "s", outcome.seconds, rows_per_s));
  nlohmann::ordered_json event{{"event", "end"},
                               {"status", "ok"},
                               {"steps", result.steps},
                               {"epochs", result.epochs},
                               {"train_loss", outcome.train_loss},
                               {"objective", outcome.train_loss + outcome.penalty},
                               {"seconds", outcome.seconds},
                               {"rows_per_s", rows_per_s},
                               {"parameters_hash", fmt::format("{:016x}", outcome.hash)}};
  if (outcome.search) {
    event["l2"] = outcome.search->l2;
    event["evaluations"] = outcome.search->search.last.evaluations;
    event["gradient_norm"] = outcome.search->search.last.gradient_norm;
    event["converged"] = outcome.search->search.end != LbfgsResult::End::iterations;
  }
  if (outcome.train) {
    console.line("training", in_words(*outcome.train));
    event["train_scores"] = to_json(*outcome.train, target_names);
  }
  if (outcome.valid) {
    console.line("validation", fmt::format("loss {:.7g}, {}", outcome.valid->loss, in_words(*outcome.valid)));
    event["valid_scores"] = to_json(*outcome.valid, target_names);
    event["best_epoch"] = nullptr;
    if (outcome.best_epoch >= 0) event["best_epoch"] = outcome.best_epoch;
  }
  console.line("parameters", fmt::format("hash {:016x}, equal on all ranks", outcome.hash));
  console.event(event);
}

}  // namespace ddp::app
