#pragma once

#include <optional>

#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/launch/world.hpp>
#include "options.hpp"

namespace ddp::app {

struct TrainingData {
  TableShare share;  ///< names only, once the rows are gathered
  std::optional<Standardizer> standardizer;
  Dataset rows;
};

/// Collective. What --data names, or nothing; prints what a person should know of it.
[[nodiscard]] std::optional<TrainingData> load_data(const World& world, const TrainOptions& options);

}  // namespace ddp::app
