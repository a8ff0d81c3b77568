#include "penalty_path.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include <linear_ddp/optim/ridge_path.hpp>
#include <linear_ddp/training/table_rows.hpp>
#include "scores.hpp"

namespace ddp::app {
namespace {

double mean_of_folds(const PenaltyPath& path, std::size_t penalty, double PenaltyPath::HeldOut::*value) {
  double sum = 0;
  for (const auto& fold : path.scores) sum += fold[penalty].*value;
  return sum / static_cast<double>(path.scores.size());
}

}  // namespace

double PenaltyPath::loss(std::size_t penalty) const {
  return mean_of_folds(*this, penalty, &HeldOut::loss);
}

double PenaltyPath::score(std::size_t penalty) const {
  return mean_of_folds(*this, penalty, &HeldOut::score);
}

double PenaltyPath::standard_error(std::size_t penalty) const {
  const auto folds = static_cast<double>(scores.size());
  const double mean = loss(penalty);
  double squares = 0;
  for (const auto& fold : scores) squares += (fold[penalty].loss - mean) * (fold[penalty].loss - mean);
  return folds < 2 ? std::numeric_limits<double>::quiet_NaN() : std::sqrt(squares / (folds - 1) / folds);
}

std::size_t PenaltyPath::best() const {
  std::size_t best = l2.size();
  for (std::size_t i = 0; i < l2.size(); ++i) {
    if (std::isfinite(loss(i)) && (best == l2.size() || loss(i) < loss(best))) best = i;
  }
  if (best == l2.size())
    throw AgreedError(Status::failed,
                      "no penalty of --l2-path has a finite loss on the rows held out; use --standardize "
                      "when features differ in scale");
  return best;
}

std::size_t PenaltyPath::one_standard_error() const {
  const double most = loss(best()) + standard_error(best());
  std::size_t strongest = best();
  for (std::size_t i = 0; i < l2.size(); ++i) {
    if (loss(i) <= most && l2[i] > l2[strongest]) strongest = i;
  }
  return strongest;
}

std::vector<int> folds_of_rows(const TrainOptions& options, std::int64_t rows) {
  std::vector<int> fold(static_cast<std::size_t>(rows), 0);
  if (!options.folds) return fold;
  if (*options.folds > rows) throw UseError(fmt::format("--folds {}: there are only {} rows", *options.folds, rows));
  std::vector<std::int64_t> order;
  if (options.shuffle) order = TorchGenerator(options.seed).randperm(rows);
  const std::int64_t folds = *options.folds, longer = rows % folds;
  std::int64_t place = 0;
  for (std::int64_t one = 0; one < folds; ++one) {
    for (const std::int64_t end = place + rows / folds + (one < longer ? 1 : 0); place < end; ++place) {
      const std::int64_t row = options.shuffle ? order[static_cast<std::size_t>(place)] : place;
      fold[static_cast<std::size_t>(row)] = static_cast<int>(one);
    }
  }
  return fold;
}

PenaltyPath ridge_path(const World& world, const TrainOptions& options, const TrainingTables& tables) {
  const TableShare& training = tables.training;
  LeastSquaresRows rows = rows_of(training);
  std::vector<int> part, held_out{1};
  std::vector<int> fitted{0};
  int parts = 2;  // training and validation rows
  if (options.folds) {
    const auto fold = agree(world, [&] { return folds_of_rows(options, training.total_rows); });
    for (const RowRange& range : training.ranges()) {
      part.insert(part.end(), fold.begin() + range.first, fold.begin() + range.first + range.count);
    }
    parts = static_cast<int>(*options.folds);
    held_out.resize(static_cast<std::size_t>(parts));
    std::iota(held_out.begin(), held_out.end(), 0);
    fitted = held_out;
  } else {
    const LeastSquaresRows valid = rows_of(*tables.valid);
    part.assign(static_cast<std::size_t>(training.rows), 0);
    part.insert(part.end(), static_cast<std::size_t>(valid.rows), 1);
    rows.rows += valid.rows;
    rows.each_block = [first = rows.each_block, second = valid.each_block](const auto& visit) {
      first(visit);
      second(visit);
    };
  }
  const RidgePath ridge(world, rows, part, parts);
  PenaltyPath path{options.l2_path, {}, {}};
  for (const auto& fold : ridge.scores(held_out, options.l2_path, options.bias)) {
    auto& scores = path.scores.emplace_back();
    for (const RidgeScore& score : fold) scores.push_back({score.mse, score.r2});
  }
  path.moments = ridge.moments(fitted, options.bias);
  return path;
}

void report(const PenaltyPath& path, const TrainOptions& options, double weight, std::int64_t outputs,
            Console& console) {
  const bool numbers = options.task() == Task::regression, folds = options.folds.has_value();
  const auto other_spelling = [&](double l2) {
    return numbers ? l2 * weight * static_cast<double>(outputs) / 2 : 1 / (l2 * weight);
  };
  const std::string score = score_name(options.task());
  console.line("path", fmt::format("{:<12} {:<12} {:<12} {}{}", "--l2", numbers ? "--alpha" : "--C",
                                   folds ? "mean loss" : "loss", folds ? fmt::format("{:<12} ", "± error") : "",
                                   numbers ? "R2" : score));
  const std::size_t best = path.best(), one_error = folds ? path.one_standard_error() : best;
  for (std::size_t i = 0; i < path.l2.size(); ++i) {
    const double error = path.standard_error(i);
    const char* note = i == best ? "  best" : i == one_error ? "  strongest within one standard error of the best" : "";
    console.line("", fmt::format("{:<12.6g} {:<12.6g} {:<12.7g} {}{:.6g}{}", path.l2[i], other_spelling(path.l2[i]),
                                 path.loss(i), folds ? fmt::format("{:<12.3g} ", error) : "", path.score(i), note));
    std::vector<double> losses;
    for (const auto& fold : path.scores) losses.push_back(fold[i].loss);
    nlohmann::ordered_json event{{"event", "penalty"}, {"l2", path.l2[i]}, {"valid_loss", path.loss(i)}};
    event["valid_" + score] = path.score(i);
    if (folds) {
      event["valid_loss_standard_error"] = error;
      event["valid_losses"] = losses;
    }
    event["best"] = i == best;
    if (folds) event["one_standard_error"] = i == one_error;
    console.event(event);
  }
}

}  // namespace ddp::app
