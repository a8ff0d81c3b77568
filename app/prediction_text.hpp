#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model_file.hpp"

namespace ddp::app {

/// Predictions as a file has them: a line of a CSV table, or a row of an array. Numbers are float32, of a model of
/// float64 float64, and written with as many digits as tell them apart; of classes comes first the label, which an
/// array can only have when it is a number.
class PredictionText {
 public:
  /// Throws UseError for an array of labels that are no numbers.
  PredictionText(const StoredModel& model, Task task, bool probabilities, bool is_array);

  /// What comes before the rows.
  [[nodiscard]] std::string head(std::int64_t rows) const;
  /// Adds a row, from the model's outputs.
  void append(std::string& text, std::span<const double> outputs) const;

 private:
  void append_number(std::string& text, double value) const;

  Task task_;
  bool probabilities_, is_array_, is_f64_;
  std::vector<std::string> columns_, labels_;  ///< as they are written
  std::vector<double> label_values_;           ///< for an array
};

}  // namespace ddp::app
