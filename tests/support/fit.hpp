#pragma once

#include <cstdint>
#include <vector>

#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/data/table.hpp>
#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/training/evaluation.hpp>
#include <linear_ddp/training/trainer.hpp>

namespace ddp::test {

/// A training by gradient descent from zeros.
struct FitOptions {
  LossKind loss = LossKind::mse;
  double lr = 0.3, momentum = 0;
  std::int64_t epochs = 1;
  std::int64_t global_batch = 0;  ///< rows of all ranks at each step; 0: all
  bool bias = true;
};

struct Fit {
  std::vector<float> weight, bias;  ///< equal on all ranks
  std::vector<float> losses;        ///< of each step, before its update
  TrainingResult training;
  Scores scores;  ///< of the final parameters, over all rows
};

/// Collective, on the ranks of world() and their CPUs. Classes are the dataset's.
[[nodiscard]] Fit fit(const Dataset& data, const FitOptions& options);
[[nodiscard]] Fit fit(const TableShare& share, const FitOptions& options);
/// With features standardised, and weights for raw ones.
[[nodiscard]] Fit fit_standardized(TableShare share, const FitOptions& options);

/// Trains on a table of y = 1 + 2a - 3b, and expects the model to find that.
void expect_base_model(const TableShare& share);
/// The same of the first rows of BASE.csv, whose values are expected too.
void expect_base_case(const TableShare& share, std::int64_t rows = 8);

}  // namespace ddp::test
