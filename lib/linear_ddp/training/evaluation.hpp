#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/launch/world.hpp>
#include <linear_ddp/nn/model.hpp>

/// What a model is worth on a table. Each rank looks at its own share of the rows, a piece at a time, each row counts
/// once and by its weight: the answer is that of one rank, but for rounding.
namespace ddp {

/// Of one target, over all rows. As in scikit-learn; r2 of a target that is constant is 1 when it is met exactly, else
/// 0, and that of fewer than 2 rows is NaN.
struct TargetScores {
  double mse = 0, rmse = 0, mae = 0, r2 = 0;
};

/// Row by row one of several classes. Without the loss's own label smoothing and class weights.
struct ClassScores {
  double log_loss = 0, accuracy = 0;
  double balanced_accuracy = 0;           ///< mean of the recalls of the classes that have rows
  double roc_auc = 0;                     ///< of two classes, Mann-Whitney's with ties; NaN when only one has rows
  std::vector<std::int64_t> confusion{};  /// rows [true class, class told]; empty for more than most_confused classes
  static constexpr std::int64_t most_confused = 2048;
};

struct Scores {
  std::int64_t rows = 0;
  double loss = 0;                      ///< as evaluate_loss gives it
  std::vector<TargetScores> targets{};  ///< for mse and huber
  std::optional<ClassScores> classes{};
  /// The mean of the targets' r2, or the accuracy.
  [[nodiscard]] double score() const;
};

/// The class that a row's outputs tell: of one output, whether the logit is above 0; of several, the first of the
/// highest.
template <class T>
[[nodiscard]] std::size_t told_class(std::span<const T> outputs) {
  if (outputs.size() == 1) return outputs[0] > 0 ? 1 : 0;
  return static_cast<std::size_t>(std::max_element(outputs.begin(), outputs.end()) - outputs.begin());
}

/// Collective. The mean of the loss over all rows and outputs, in float64 (with weights of classes: a row counts its
/// own times its class's): rank r evaluates the rows [rows · r / ranks, rows · (r + 1) / ranks). Waits.
[[nodiscard]] double evaluate_loss(Device& device, ProcessGroup& group, Model& model, const Dataset& data);
/// The same of each head.
[[nodiscard]] std::vector<double> evaluate_losses(Device& device, ProcessGroup& group, Model& model,
                                                  const Dataset& data);

/// Collective. The outputs are the device's, all sums float64. For the area under the ROC curve a float a row is kept
/// on each host, and two more on rank 0, which sorts them: `in_detail` false spares that, and leaves NaN, and spares
/// the confusion. Throws UseError for BCE of several outputs. Waits.
[[nodiscard]] Scores evaluate(const World& world, Device& device, Model& model, const Dataset& data,
                              bool in_detail = true);
/// The same of each head, on one reading of the data.
[[nodiscard]] std::vector<Scores> evaluate_heads(const World& world, Device& device, Model& model, const Dataset& data,
                                                 bool in_detail = true);

}  // namespace ddp
