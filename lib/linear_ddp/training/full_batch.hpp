#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/data/resident_rows.hpp>
#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/optim/lbfgs.hpp>
#include <linear_ddp/training/trainer.hpp>

namespace ddp {

/// Mean loss over all ranks' rows plus l2/2 · ‖W‖², as a function of a layer's parameters: weight [out, in], then bias
/// [out]. The products are float; the loss, the sums over the ranks and the penalty are float64. Several heads, as many
/// layers with a penalty each, are evaluated side by side, by one wide product and one all-reduce.
class FullBatchObjective {
 public:
  /// One of the layers.
  struct Head {
    std::span<double> x;         ///< becomes what floats hold of it
    std::span<double> gradient;  ///< is set
    double l2 = 0;
    double value = 0;  ///< is set
  };

  /// The rows and all else outlive this object. `shape` is one head's.
  FullBatchObjective(Device& device, ProcessGroup& group, const LinearShape& shape, const LossOptions& loss,
                     FullBatch rows);

  /// Collective, with as many heads on every rank. Waits.
  void evaluate(std::span<Head> heads);

  /// Of one head.
  [[nodiscard]] std::int64_t numel() const noexcept { return weights_ + biases_; }
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_.rows; }

 private:
  void make_room(std::int64_t heads);
  void set_parameters(std::span<Head> heads);
  void queue_losses();

  Device& device_;
  ProcessGroup& group_;
  LinearShape shape_;
  LossOptions loss_;
  FullBatch rows_;
  std::int64_t weights_, biases_;  ///< of a head
  std::optional<Model> model_;     ///< of as many heads as were evaluated last
  Buffer<double> sums_;            ///< the gradients, and the losses
  std::vector<float> floats_;
  std::vector<double> received_;
};

/// Where L-BFGS of several heads begin and end, and how.
struct HeadSearch {
  double l2 = 0;
  std::vector<double> x;  ///< FullBatchObjective::numel() of them
  LbfgsResult result{};
};

/// Collective. Minimises the objective for each of the heads by L-BFGS of its own; all advance together, an evaluation
/// at a time, and those that have ended drop out. `report` is called after each iteration of each head (its number),
/// and ends that head's search by returning true.
void minimize_together(FullBatchObjective& objective, std::span<HeadSearch> heads, const LbfgsOptions& options,
                       const std::function<bool(std::size_t head, const LbfgsSearch&)>& report = {});

/// Collective. The minima of all penalties, [l2.size()]: `at_once` of them together at a time, from the strongest on;
/// the first ones start at `start`, the others where the weakest of those before has come to.
[[nodiscard]] std::vector<HeadSearch> minimize_path(FullBatchObjective& objective, std::span<const double> l2,
                                                    std::vector<double> start, std::size_t at_once,
                                                    const LbfgsOptions& options);

/// l2/2 · ‖W‖².
[[nodiscard]] double l2_penalty(std::span<const double> weight, double l2);

struct LbfgsTrainerOptions {
  LbfgsOptions lbfgs;
  double l2 = 0;
  /// Collective, after each iteration; empty: none.
  std::function<Validation(std::int64_t iteration)> validate;
};

/// Collective. Trains the model by L-BFGS, and leaves the parameters where it ends. The observer gets an epoch's report
/// for each iteration, with the mean loss of its parameters over all rows, without the penalty.
LbfgsResult train_by_lbfgs(FullBatchObjective& objective, Model& model, const LbfgsTrainerOptions& options,
                           TrainingObserver& observer);

/// The same of another objective that has the penalty, from x on, which ends as the parameters that were found; the
/// model gets them rounded.
LbfgsResult train_by_lbfgs(const Objective& objective, std::vector<double>& x, Model& model,
                           const LbfgsTrainerOptions& options, TrainingObserver& observer);

/// A head's parameters as the objective has them. To set them is queued, to get the first head's waits.
[[nodiscard]] std::vector<double> get_parameters(const Model& model);
void set_parameters(Model& model, std::span<const double> x, std::int64_t head = 0);
/// The weight [out, in] among them.
[[nodiscard]] std::span<const double> weight_of(const Model& model, std::span<const double> x);

}  // namespace ddp
