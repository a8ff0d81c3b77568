#include <linear_ddp/training/score_sums.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ddp {
namespace {

/// -log of the probability of a class, of one output or of several.
double negative_log_likelihood(std::span<const float> outputs, std::size_t target) {
  if (outputs.size() == 1) {
    const double z = target == 1 ? -double{outputs[0]} : double{outputs[0]};
    return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)));
  }
  const double highest = double{*std::max_element(outputs.begin(), outputs.end())};
  double sum = 0;
  for (const float z : outputs) sum += std::exp(double{z} - highest);
  return std::log(sum) + (highest - double{outputs[target]});
}

}  // namespace

TargetScores target_scores(double square, double absolute, double deviation, double weight, std::int64_t rows) {
  const double r2 = rows < 2         ? std::numeric_limits<double>::quiet_NaN()
                    : deviation != 0 ? 1 - square / deviation
                    : square == 0    ? 1.0
                                     : 0.0;
  return {square / weight, std::sqrt(square / weight), absolute / weight, r2};
}

RegressionSums::RegressionSums(std::vector<double> means) : means_(std::move(means)), sums_(means_.size()) {}

void RegressionSums::add(const Dataset& data, std::size_t row, std::span<const float> outputs) {
  const double weight = weight_of(data, row);
  for (std::size_t o = 0; o < sums_.size(); ++o) {
    const double target = double{data.y[row * sums_.size() + o]};
    const double error = double{outputs[o]} - target;
    sums_[o].square += weight * error * error;
    sums_[o].absolute += weight * std::abs(error);
    sums_[o].deviation += weight * (target - means_[o]) * (target - means_[o]);
  }
}

void RegressionSums::append_to(std::vector<double>& sums) const {
  for (const Sums& one : sums_) sums.insert(sums.end(), {one.square, one.absolute, one.deviation});
}

std::vector<TargetScores> RegressionSums::scores(std::span<const double> sums, double weight, std::int64_t rows) const {
  std::vector<TargetScores> scores;
  for (std::size_t o = 0; o < means_.size(); ++o) {
    scores.push_back(target_scores(sums[3 * o], sums[3 * o + 1], sums[3 * o + 2], weight, rows));
  }
  return scores;
}

ClassSums::ClassSums(std::size_t classes, bool confuses)
    : classes_(classes),
      of_class_(classes),
      right_(classes),
      confusion_(confuses && std::cmp_less_equal(classes, ClassScores::most_confused) ? classes * classes : 0) {}

void ClassSums::add(const Dataset& data, std::size_t row, std::span<const float> outputs) {
  const auto target = static_cast<std::size_t>(data.y[row]);
  const std::size_t told = told_class(outputs);
  const double weight = weight_of(data, row);
  log_loss_ += weight * negative_log_likelihood(outputs, target);
  of_class_.at(target) += weight;
  if (told == target) right_[target] += weight;
  if (!confusion_.empty()) ++confusion_[target * classes_ + told];
}

void ClassSums::append_to(std::vector<double>& sums) const {
  if (classes_ == 0) return;
  sums.push_back(log_loss_);
  sums.insert(sums.end(), of_class_.begin(), of_class_.end());
  sums.insert(sums.end(), right_.begin(), right_.end());
}

ClassScores ClassSums::scores(std::span<const double> sums, double weight) const {
  const auto of_class = sums.subspan(1, classes_), right = sums.subspan(1 + classes_, classes_);
  ClassScores scores;
  scores.log_loss = sums[0] / weight;
  double all_right = 0, recalls = 0, present = 0;
  for (std::size_t c = 0; c < classes_; ++c) {
    all_right += right[c];
    if (of_class[c] == 0) continue;
    recalls += right[c] / of_class[c];
    ++present;
  }
  scores.accuracy = all_right / weight;
  scores.balanced_accuracy = recalls / present;
  scores.confusion = confusion_;
  return scores;
}

double mann_whitney(const Dataset& data, const float* logits) {
  struct Row {
    float logit, signed_weight;  // that of the second class is positive
  };
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(data.rows));
  for (std::size_t row = 0; std::cmp_less(row, data.rows); ++row) {
    if (std::isnan(logits[row])) return std::numeric_limits<double>::quiet_NaN();
    const auto weight = static_cast<float>(weight_of(data, row));
    rows.push_back({logits[row], data.y[row] == 1 ? weight : -weight});
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.logit < b.logit; });
  double lower = 0, upper = 0, wins = 0;  // weights of the two classes so far
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    double own_lower = 0, own_upper = 0;
    for (; end < rows.size() && rows[end].logit == rows[begin].logit; ++end) {
      const double weight = double{rows[end].signed_weight};
      (weight > 0 ? own_upper : own_lower) += std::abs(weight);
    }
    wins += own_upper * (lower + own_lower / 2);
    lower += own_lower;
    upper += own_upper;
  }
  return lower > 0 && upper > 0 ? wins / (lower * upper) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace ddp
