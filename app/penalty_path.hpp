#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <linear_ddp/optim/least_squares.hpp>
#include <linear_ddp/training/evaluation.hpp>
#include "console.hpp"
#include "options.hpp"
#include "training_data.hpp"

namespace ddp::app {

/// --l2-path: what each penalty is worth on rows that were held out, those of --valid or of each fold in turn.
struct PenaltyPath {
  struct HeldOut {
    double loss, score;  ///< as in Scores
  };
  std::vector<double> l2;
  std::vector<std::vector<HeldOut>> scores;  ///< [folds, or 1][l2]
  std::shared_ptr<const Moments> moments{};  ///< of least squares: for the fit of all rows

  /// Over the folds.
  [[nodiscard]] double loss(std::size_t penalty) const;
  [[nodiscard]] double score(std::size_t penalty) const;
  /// Of that mean of losses, as it varies from fold to fold; NaN without folds.
  [[nodiscard]] double standard_error(std::size_t penalty) const;
  /// With the smallest loss, that is finite; the first of equal ones. Throws AgreedError when none is.
  [[nodiscard]] std::size_t best() const;
  /// The strongest penalty whose loss is within one standard error of the best one's (Breiman et al., 1984).
  [[nodiscard]] std::size_t one_standard_error() const;
  /// As --one-standard-error wants it.
  [[nodiscard]] std::size_t chosen(const TrainOptions& options) const {
    return options.one_standard_error ? one_standard_error() : best();
  }
};

/// The fold of each row: --folds parts of the rows in a random order, or, with --no-shuffle, of the table's; the first
/// ones have a row more, as in scikit-learn's KFold. One part without --folds. Throws UseError for fewer rows.
[[nodiscard]] std::vector<int> folds_of_rows(const TrainOptions& options, std::int64_t rows);

/// Collective. That of least squares with a penalty, on the numbers of the tables.
[[nodiscard]] PenaltyPath ridge_path(const World& world, const TrainOptions& options, const TrainingTables& tables);

/// The table, and an event for each penalty. `weight` is that of all training rows.
void report(const PenaltyPath& path, const TrainOptions& options, double weight, std::int64_t outputs,
            Console& console);

}  // namespace ddp::app
