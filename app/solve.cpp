#include "solve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>

#include <linear_ddp/base/atomic_file.hpp>
#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/preflight.hpp>
#include <linear_ddp/training/table_rows.hpp>
#include "model_file.hpp"
#include "objective.hpp"
#include "penalty_path.hpp"
#include "runtime.hpp"
#include "scores.hpp"
#include "training_data.hpp"

namespace ddp::app {
namespace {

using Method = LeastSquaresSolution::Method;

/// "age", or "the bias".
std::string name_of_column(const TableShare& table, std::int64_t column) {
  return column == std::ssize(table.feature_names) ? "the bias"
                                                   : table.feature_names.at(static_cast<std::size_t>(column));
}

/// What a person must know of a solution that is not the only one, or not the one that was asked for.
void warn_of(const TrainOptions& options, const TableShare& table, const LeastSquaresSolution& solution) {
  if (!solution.dependent.empty()) {
    std::vector<std::string> names;
    for (const std::int64_t column : solution.dependent) names.push_back(name_of_column(table, column));
    const bool too_many = names.size() > 10;
    const auto count = names.size();
    if (too_many) names.resize(10);
    fmt::print(stderr,
               "linear_ddp: note: {} of {} features depend on the others: {}{}; of all solutions the one with the "
               "smallest weights is taken\n",
               count, table.feature_names.size(), fmt::join(names, ", "), too_many ? ", …" : "");
  } else if (options.precision == "fp64" && solution.method != Method::refined_qr) {
    fmt::print(stderr,
               "linear_ddp: note: the features are so nearly dependent (condition {:.2g}) that numbers of double "
               "precision do not tell the solution: the weights may have no right digit\n",
               solution.condition);
  }
}

std::string how_solved(const LeastSquaresSolution& solution, std::size_t features) {
  return fmt::format("{}; {}{}", name_of(solution.method),
                     solution.dependent.empty() ? fmt::format("condition {:.3g}", solution.condition)
                                                : fmt::format("rank {} of {}", solution.rank, features),
                     solution.refinements == 0   ? ""
                     : solution.refinements == 1 ? ", 1 refinement"
                                                 : fmt::format(", {} refinements", solution.refinements));
}

/// A line for each weight and bias, with its standard error.
void print_summary(Console& console, const TableShare& table, const LeastSquaresSolution& solution) {
  const std::size_t in = table.feature_names.size();
  for (std::size_t o = 0; o < table.target_names.size(); ++o) {
    console.line("summary", fmt::format("{:<16} {:>24} {:>24} {:>12}", fmt::format("of {}", table.target_names[o]),
                                        "estimate", "standard error", "t"));
    const auto line = [&](const std::string& name, double value, double error) {
      console.line("", fmt::format("{:<16} {:>24.16g} {:>24.16g} {:>12.4g}", name, value, error, value / error));
    };
    if (!solution.bias.empty()) line("(bias)", solution.bias[o], solution.bias_errors[o]);
    for (std::size_t i = 0; i < in; ++i) {
      line(table.feature_names[i], solution.weight[o * in + i], solution.weight_errors[o * in + i]);
    }
  }
}

/// The scores of the training rows with the sums of the solver, which are right where those of residuals cancel.
Scores training_scores(const World& world, const TableShare& table, const LeastSquaresSolution& solution,
                       double weight) {
  Scores scores = evaluate(world, table, solution.weight, solution.bias);
  scores.loss = 0;
  for (std::size_t o = 0; o < scores.targets.size(); ++o) {
    TargetScores& target = scores.targets[o];
    const double mse = solution.square_sums[o] / weight;
    if (target.mse > 0) target.r2 = 1 - (1 - target.r2) * (mse / target.mse);
    target.mse = mse;
    target.rmse = std::sqrt(mse);
    scores.loss += mse / static_cast<double>(scores.targets.size());
  }
  return scores;
}

nlohmann::ordered_json summary_json(const TableShare& table, const LeastSquaresSolution& solution) {
  return {{"event", "summary"},
          {"features", table.feature_names},
          {"targets", table.target_names},
          {"weight", solution.weight},
          {"bias", solution.bias},
          {"weight_standard_errors", solution.weight_errors},
          {"bias_standard_errors", solution.bias_errors}};
}

void save(const TrainOptions& options, const TrainingTables& tables, const LeastSquaresSolution& solution) {
  Provenance provenance{.task = Task::regression, .loss = options.loss()};
  provenance.feature_names = tables.training.feature_names;
  provenance.target_names = tables.training.target_names;
  provenance.standardizer = tables.standardizer ? &*tables.standardizer : nullptr;
  save_model(options.save, {solution.weight, solution.bias}, std::ssize(tables.training.feature_names),
             options.precision == "fp64", provenance);
}

}  // namespace

void solve(const World& world, const TrainOptions& options, Watchdog& watchdog, Console& console) {
  agree(world, [&] {
    if (world.rank() == 0 && !options.save.empty()) require_writable(options.save);
  });
  const SelectedDevice host = select_device(world, DeviceRequest::cpu);
  console.line("linear_ddp", fmt::format("{}: {}, {}", version(), describe_ranks(world), host.device->description()));
  const TrainingTables tables = load_tables(world, options);
  const TableShare& table = tables.training;
  Facts facts = run_facts(*host.device, options);
  facts.emplace_back("rows", std::to_string(table.total_rows));
  require_agreement(world, facts, "the ranks do not agree, so nothing was started",
                    "start the same program with the same options, data and libraries on every node");
  const auto features = std::ssize(table.feature_names), targets = std::ssize(table.target_names);
  const std::int64_t parameters = (features + (options.bias ? 1 : 0)) * targets;
  console.line("model", fmt::format("Linear({} -> {}), {} parameters", features, targets, parameters));
  console.line("data", fmt::format("{}: {} rows, {} feature{} -> {}{}", options.data, table.total_rows, features,
                                   features == 1 ? "" : "s",
                                   targets <= 4 ? fmt::format("{}", fmt::join(table.target_names, ", "))
                                                : fmt::format("{} targets", targets),
                                   tables.valid ? fmt::format("; {} to validate on", tables.valid->total_rows) : ""));
  nlohmann::ordered_json start{{"event", "start"},
                               {"version", version()},
                               {"world_size", world.size()},
                               {"device", "cpu"},
                               {"parameters", parameters},
                               {"rows", table.total_rows},
                               {"train_loss_is", "of the final parameters over all training rows"}};
  const double weight = total_weight(world, table);
  double l2 = l2_of(options, weight, targets);
  start.update(options.to_json());
  start["l2"] = l2;
  console.start_event(start);

  const auto begin = std::chrono::steady_clock::now();
  std::shared_ptr<const Moments> moments;
  if (!options.l2_path.empty()) {
    const Watchdog::Watch scoring(watchdog, "scoring of penalties", 0);
    const PenaltyPath path = ridge_path(world, options, tables);
    report(path, options, weight, targets, console);
    l2 = path.l2[path.chosen(options)];
    moments = path.moments;
  }
  // Σ weight · ‖error‖² + λ · ‖W‖² has its minimum where mean loss + l2/2 · ‖W‖² has it.
  const double ridge = l2 / 2 * weight * static_cast<double>(targets);
  const auto solution = [&] {
    const Watchdog::Watch solving(watchdog, "solving of least squares", 0);
    LeastSquaresRows rows = rows_of(table);
    rows.moments = moments;
    return solve_least_squares(world, rows, {options.bias, ridge, options.precision == "fp64", options.summary});
  }();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!solution.converged) {
    throw AgreedError(
        Status::failed,
        fmt::format("least squares were not solved: the refinement of the solution by {} does not come to "
                    "an end (condition {:.3g}); leave out features that depend on the others, or use "
                    "--precision {}",
                    name_of(solution.method), solution.condition, options.precision == "fp64" ? "fp32" : "fp64"));
  }
  const std::uint64_t hash = agreed_hash_of(world, solution.weight, solution.bias);
  if (world.rank() == 0) warn_of(options, table, solution);
  const Scores scores = training_scores(world, table, solution, weight);
  std::optional<Scores> valid;
  if (tables.valid) valid = evaluate(world, *tables.valid, solution.weight, solution.bias);
  double squares = 0;
  for (const double value : solution.weight) squares += value * value;

  console.line("solved", how_solved(solution, table.feature_names.size()));
  if (options.summary) {
    print_summary(console, table, solution);
    console.event(summary_json(table, solution));
  }
  agree(world, [&] {
    if (world.rank() != 0 || options.save.empty()) return;
    save(options, tables, solution);
    console.line("saved", options.save);
  });
  console.line("result", fmt::format("train loss {:.7g}, {:.3g} s ({:.3g} rows/s)", scores.loss, seconds,
                                     static_cast<double>(table.total_rows) / seconds));
  console.line("training", in_words(scores));
  if (valid) console.line("validation", fmt::format("loss {:.7g}, {}", valid->loss, in_words(*valid)));
  console.line("parameters", fmt::format("hash {:016x}, equal on all ranks", hash));
  nlohmann::ordered_json end{{"event", "end"},
                             {"status", "ok"},
                             {"l2", l2},
                             {"method", name_of(solution.method)},
                             {"condition", solution.condition},
                             {"rank", solution.rank},
                             {"refinements", solution.refinements},
                             {"train_loss", scores.loss},
                             {"objective", scores.loss + l2 / 2 * squares},
                             {"seconds", seconds},
                             {"rows_per_s", static_cast<double>(table.total_rows) / seconds},
                             {"parameters_hash", fmt::format("{:016x}", hash)},
                             {"train_scores", to_json(scores, table.target_names)}};
  if (valid) end["valid_scores"] = to_json(*valid, table.target_names);
  console.event(end);
}

}  // namespace ddp::app
