#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/data/batch_source.hpp>
#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/optim/lbfgs.hpp>
#include <linear_ddp/training/trainer.hpp>

namespace ddp {

/// Mean loss over all ranks' rows plus l2/2 · ‖W‖², as a function of the model's parameters. The products are float, as
/// the model is; the loss, the sums over the ranks and the penalty are float64, and one all-reduce brings all of it.
class FullBatchObjective {
 public:
  /// The source has one step over all rows (BatchSource::one_step_over_all_rows), which stay on the device. All outlive
  /// this object.
  FullBatchObjective(Device& device, ProcessGroup& group, Model& model, BatchSource& source, double l2);

  /// The model's parameters as they are.
  [[nodiscard]] std::vector<double> parameters() const;
  /// Sets them to x, which is rounded to float. Queued.
  void set_parameters(std::span<const double> x);
  /// Collective. Rounds x to float, sets the parameters to it, and tells what it is worth. Waits.
  double operator()(std::span<double> x, std::span<double> gradient);
  /// l2/2 · ‖W‖².
  [[nodiscard]] double penalty(std::span<const double> x) const;
  [[nodiscard]] std::int64_t rows() const noexcept { return step_.update_rows; }

 private:
  Device& device_;
  ProcessGroup& group_;
  Model& model_;
  Step step_;
  double scale_, l2_;
  std::size_t numel_, penalized_;
  Buffer<double> sums_;  ///< the gradient, and the loss
  std::vector<float> floats_;
  std::vector<double> received_;
};

struct LbfgsTrainerOptions {
  LbfgsOptions lbfgs;
  /// Collective, after each iteration; empty: none.
  std::function<Validation(std::int64_t iteration)> validate;
};

/// Collective. Trains the model by L-BFGS, and leaves the parameters where it ends. The observer gets an epoch's report
/// for each iteration, with the mean loss of its parameters over all rows, without the penalty.
LbfgsResult train_by_lbfgs(FullBatchObjective& objective, const LbfgsTrainerOptions& options,
                           TrainingObserver& observer);

}  // namespace ddp
