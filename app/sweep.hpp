#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/training/trainer.hpp>
#include "console.hpp"
#include "options.hpp"

/// --sweep: heads side by side, each with hyper-parameters of its own, trained on one reading of the data.
namespace ddp::app {

/// The options of each head's training alone, the last name's values changing fastest; without --sweep one.
[[nodiscard]] std::vector<TrainOptions> heads_of(const TrainOptions& options);

/// A model of so many heads, all with the parameters of a model of one.
[[nodiscard]] Model repeated(Device& device, const Model& one, std::size_t heads);

/// What a head's training came to.
struct HeadResult {
  double train_loss;
  std::optional<Validation> validation;
  std::int64_t best_epoch;  ///< as EarlyStopping has it
};

/// The ranking, by the validation loss, or without --valid by the training loss: a table, and an event for each head.
/// Returns the best one's number. Throws AgreedError when no loss is finite.
std::size_t report_sweep(const TrainOptions& options, const std::vector<TrainOptions>& heads,
                         const std::vector<HeadResult>& results, Console& console);

}  // namespace ddp::app
