#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <linear_ddp/training/evaluation.hpp>
#include "task.hpp"

/// Scores, for people and for programs.
namespace ddp::app {

/// "r2" or "accuracy": what Scores::score() is.
[[nodiscard]] const char* score_name(Task task);

/// "R2 0.5177, RMSE 53.48, MAE 43.28"; means over the targets.
[[nodiscard]] std::string in_words(const Scores& scores);

/// As in_words, by name; of several targets those of each, too.
[[nodiscard]] nlohmann::ordered_json to_json(const Scores& scores, const std::vector<std::string>& target_names);

/// A line for each class: how often each was told for it.
[[nodiscard]] std::vector<std::string> confusion_lines(const ClassScores& scores,
                                                       const std::vector<std::string>& classes);
[[nodiscard]] nlohmann::ordered_json confusion_json(const ClassScores& scores);

}  // namespace ddp::app
