#pragma once

#include <optional>

#include <linear_ddp/data/dataset.hpp>
#include "options.hpp"

namespace ddp::app {

struct TrainingData {
  TableShare share;  ///< for L-BFGS in float64 as it was read, standardised; else names only
  std::optional<Standardizer> standardizer;
  Dataset rows;
  std::optional<Dataset> valid;  ///< of --valid, standardised as the training rows are
};

/// The tables of --data and --valid as they were read, standardised where that is asked for.
struct TrainingTables {
  TableShare training;
  std::optional<TableShare> valid;
  std::optional<Standardizer> standardizer;  ///< of the training rows
};

/// Collective. As --task wants their target. What a person should know of them goes to stderr.
[[nodiscard]] TrainingTables load_tables(const World& world, const TrainOptions& options);

/// Collective. The table of --data, as --task wants its target; nothing without one. What a person should know of it
/// goes to stderr.
[[nodiscard]] std::optional<TrainingData> load_data(const World& world, const TrainOptions& options);

/// To stderr, by rank 0.
void print_notices(const World& world, const std::vector<std::string>& notices);

}  // namespace ddp::app
