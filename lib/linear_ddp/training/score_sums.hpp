#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <linear_ddp/training/evaluation.hpp>

/// The sums that scores are made of, each rank's over its own rows, to be added up over the ranks.
namespace ddp {

[[nodiscard]] inline const SharedArray& score_weights(const Dataset& data) {
  return data.score_weights ? *data.score_weights : data.weights;
}

/// What a row counts in scores.
[[nodiscard]] inline double weight_of(const Dataset& data, std::size_t row) {
  const SharedArray& weights = score_weights(data);
  return weights.empty() ? 1.0 : double{weights[row]};
}

/// From the weighted sums of squared and absolute errors, and of squared deviations of the target from its mean.
[[nodiscard]] TargetScores target_scores(double square, double absolute, double deviation, double weight,
                                         std::int64_t rows);

class RegressionSums {
 public:
  /// With the targets' means over all rows.
  explicit RegressionSums(std::vector<double> means);
  void add(const Dataset& data, std::size_t row, std::span<const float> outputs);
  void append_to(std::vector<double>& sums) const;
  [[nodiscard]] std::vector<TargetScores> scores(std::span<const double> sums, double weight, std::int64_t rows) const;

 private:
  struct Sums {
    double square = 0, absolute = 0, deviation = 0;
  };
  std::vector<double> means_;
  std::vector<Sums> sums_;
};

class ClassSums {
 public:
  /// The confusion is empty unless it `confuses`.
  ClassSums(std::size_t classes, bool confuses);
  /// One output is the logit of the second of two classes.
  void add(const Dataset& data, std::size_t row, std::span<const float> outputs);
  void append_to(std::vector<double>& sums) const;
  [[nodiscard]] std::vector<std::int64_t>& confusion() { return confusion_; }
  [[nodiscard]] ClassScores scores(std::span<const double> sums, double weight) const;

 private:
  std::size_t classes_;
  double log_loss_ = 0;
  std::vector<double> of_class_, right_;  ///< weights of each class's rows, and of those that were told right
  std::vector<std::int64_t> confusion_;
};

/// How likely a row of the second class has a higher logit than one of the first, of all rows; a tie counts half. NaN
/// unless both have rows.
[[nodiscard]] double mann_whitney(const Dataset& data, const float* logits);

}  // namespace ddp
