#include "lbfgs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include <linear_ddp/base/available_memory.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include "penalty_path.hpp"

namespace ddp::app {
namespace {

LbfgsOptions options_of(const LbfgsRun& run) {
  LbfgsOptions lbfgs;
  lbfgs.max_iterations = run.max_iterations;
  if (run.in_float64 != nullptr) {  // whose rounding is the search's default
    lbfgs.gradient_tolerance = run.options.tolerance.value_or(1e-10);
    if (!run.options.tolerance) lbfgs.gradient_tolerance_of_value = 1e-9;
    return lbfgs;
  }
  lbfgs.gradient_tolerance = run.options.tolerance.value_or(1e-6);
  // A weak penalty leaves a small loss, and its gradient is small far from the optimum.
  if (!run.options.tolerance) lbfgs.gradient_tolerance_of_value = 4e-6;
  lbfgs.rounding = 1e-7;  // of a mean of float losses
  return lbfgs;
}

FullBatchObjective objective_of(const LbfgsRun& run, FullBatch rows) {
  return {run.device, run.group, run.model.shape(), run.model.loss(), std::move(rows)};
}

LbfgsFit fit_of(const LbfgsRun& run, const LbfgsResult& search, std::span<const double> x, double l2) {
  const double penalty = l2_penalty(weight_of(run.model, x), l2);
  return {search, l2, search.last.value - penalty, penalty, search.last.evaluations * run.data.rows.rows};
}

/// From the model's parameters on, which are float.
LbfgsFit fit_in_float64(const LbfgsRun& run, Console& console) {
  const auto objective = [&](std::span<const double> x, std::span<double> gradient) {
    const Watchdog::Watch evaluation(run.watchdog, "evaluation of the objective", 0);
    return run.in_float64->evaluate(x, gradient, run.l2);
  };
  std::vector<double> x = get_parameters(run.model);
  const auto search = train_by_lbfgs(objective, x, run.model, {options_of(run), run.l2, run.validate}, console);
  LbfgsFit fit = fit_of(run, search, x, run.l2);
  const auto weight = weight_of(run.model, x);
  fit.found = {{weight.begin(), weight.end()}, {x.begin() + std::ssize(weight), x.end()}};
  return fit;
}

/// Collective. Searches that memory, and one wide layer, have room for at a time, on each rank of a host.
std::size_t heads_at_once(const World& world, std::int64_t numel, const LbfgsOptions& lbfgs) {
  const double vectors = 2.0 * lbfgs.history + 8;
  double room = static_cast<double>(available_memory()) / 2 / world.local_size() /
                (vectors * sizeof(double) * static_cast<double>(numel));
  all_reduce_min(world, std::span(&room, 1));
  constexpr double most_weights = std::numeric_limits<std::int32_t>::max();
  constexpr double most_heads = 256;  // wider products are no faster
  room = std::min(room, most_weights / static_cast<double>(numel));
  return static_cast<std::size_t>(std::clamp(room, 1.0, most_heads));
}

class PathFit {
 public:
  PathFit(const LbfgsRun& run, Console& console)
      : run_(run),
        console_(console),
        fold_of_row_(agree(run.world, [&] { return folds_of_rows(run.options, run.data.rows.rows); })),
        rows_(run.device, run.data.rows, run.model.loss().class_weight, run.world.rank(), run.world.size(),
              fold_of_row_),
        start_(get_parameters(run.model)),
        at_once_(heads_at_once(run.world, std::ssize(start_), options_of(run))) {
    path_.l2 = run.options.l2_path;
  }

  LbfgsFit fit() {
    if (!run_.options.folds) return fit_on_all_rows();
    std::vector<HeadSearch> heads;
    for (int fold = 0; fold < *run_.options.folds; ++fold) heads = fit_without(fold);
    report_path();
    const std::size_t chosen = path_.chosen(run_.options);
    FullBatchObjective objective = objective_of(run_, rows_.all());
    HeadSearch last{path_.l2[chosen], heads[chosen].x};
    minimize_together(objective, {&last, 1}, options_of(run_));
    set_parameters(run_.model, last.x);
    LbfgsFit fit = fit_of(run_, last.result, last.x, last.l2);
    fit.rows_seen += rows_seen_;
    return fit;
  }

 private:
  LbfgsFit fit_on_all_rows() {
    FullBatchObjective objective = objective_of(run_, rows_.all());
    const auto heads = search(objective);
    score(heads, *run_.data.valid);
    report_path();
    const HeadSearch& chosen = heads[path_.chosen(run_.options)];
    set_parameters(run_.model, chosen.x);
    LbfgsFit fit = fit_of(run_, chosen.result, chosen.x, chosen.l2);
    fit.rows_seen = rows_seen_;
    return fit;
  }

  std::vector<HeadSearch> fit_without(int fold) {
    FullBatchObjective objective = objective_of(run_, rows_.without(fold));
    auto heads = search(objective);
    std::vector<std::int64_t> held_out;
    for (std::int64_t row = 0; row < run_.data.rows.rows; ++row) {
      if (fold_of_row_[static_cast<std::size_t>(row)] == fold) held_out.push_back(row);
    }
    score(heads, select_rows(run_.world, run_.data.rows, held_out));
    return heads;
  }

  std::vector<HeadSearch> search(FullBatchObjective& objective) {
    auto heads = minimize_path(objective, path_.l2, start_, at_once_, options_of(run_));
    std::int64_t evaluations = 0;
    for (const HeadSearch& head : heads) evaluations += head.result.last.evaluations;
    rows_seen_ += evaluations * objective.rows();
    return heads;
  }

  Model side_by_side(std::span<const HeadSearch> heads) const {
    LinearShape shape = run_.model.shape();
    shape.heads = std::ssize(heads);
    Model model(run_.device, shape, run_.model.loss());
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      set_parameters(model, heads[static_cast<std::size_t>(head)].x, head);
    }
    return model;
  }

  void score(const std::vector<HeadSearch>& heads, const Dataset& rows) {
    auto& scores = path_.scores.emplace_back();
    for (std::size_t first = 0; first < heads.size(); first += at_once_) {
      const auto some = std::span(heads).subspan(first, std::min(at_once_, heads.size() - first));
      const Watchdog::Watch evaluation(run_.watchdog, "evaluation", 0);
      Model model = agree(run_.world, [&] { return side_by_side(some); });
      for (const Scores& of_head : evaluate_heads(run_.world, run_.device, model, rows, false)) {
        scores.push_back({of_head.loss, of_head.score()});
      }
    }
    if (!run_.options.folds) return;
    console_.line("fold", fmt::format("{} of {}: {} penalties on {} rows", path_.scores.size(), *run_.options.folds,
                                      heads.size(), rows.rows));
  }

  void report_path() const { report(path_, run_.options, run_.weight, run_.model.shape().out, console_); }

  const LbfgsRun& run_;
  Console& console_;
  std::vector<int> fold_of_row_;
  ResidentRows rows_;
  std::vector<double> start_;
  std::size_t at_once_;
  PenaltyPath path_;
  std::int64_t rows_seen_ = 0;
};

}  // namespace

LbfgsFit fit_by_lbfgs(const LbfgsRun& run, Console& console) {
  if (run.in_float64 != nullptr) return fit_in_float64(run, console);
  if (!run.options.l2_path.empty()) return PathFit(run, console).fit();
  const ResidentRows rows(run.device, run.data.rows, run.model.loss().class_weight, run.world.rank(), run.world.size());
  FullBatchObjective objective = objective_of(run, rows.all());
  const auto search = train_by_lbfgs(objective, run.model, {options_of(run), run.l2, run.validate}, console);
  return fit_of(run, search, get_parameters(run.model), run.l2);
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
