#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include <linear_ddp/data/batch_source.hpp>
#include <linear_ddp/optim/sgd.hpp>
#include <linear_ddp/parallel/distributed_data_parallel.hpp>

namespace ddp {

/// What the parameters are worth after an epoch, on data that they are not trained on.
struct Validation {
  double loss, score;  ///< as in Scores
  bool stops = false;  ///< that it was the training's last epoch
};

struct TrainerOptions {
  std::int64_t epochs = 1;
  std::int64_t max_steps = std::numeric_limits<std::int64_t>::max();  ///< of the optimizer
  /// Of the step after so many, from what an optimizer began with; empty: the optimizers keep theirs.
  std::function<double(double first_lr, std::int64_t done)> lr;
  std::int64_t log_every = 0;  ///< steps between on_step calls; 0: none
  /// Collective: each head's loss over all training rows, for EpochReport; empty: the mean over the epoch's rows is
  /// reported.
  std::function<std::vector<double>()> evaluate;
  /// Collective, after each epoch, of each head; every rank gets the same. Ends the training when it stops all heads;
  /// one that it stops earlier is trained on, and reported with the losses that it had then. Empty: none.
  std::function<std::vector<Validation>(std::int64_t epoch)> validate;
  /// Ends the training when an epoch changes no head's train_loss by more than so much of it; below 0: never. When one
  /// step is all the data the next one, which finds out, is done then.
  double tolerance = -1;
};

/// What a training tells while it runs, of one head after the other; every rank calls its own with the same values.
class TrainingObserver {
 public:
  struct StepReport {
    std::int64_t step, epoch;  ///< step counts from 1
    float loss;                ///< of the parameters before the step's update
    double lr;
    std::int64_t rows;  ///< of all ranks
    std::int64_t head = 0;
  };
  struct EpochReport {
    std::int64_t epoch = 0, step = 0;
    double lr = 0;  ///< of its last step
    /// Of the parameters after the epoch, over all rows, when TrainerOptions::evaluate is given or one step is all the
    /// data and averages over rows; else the mean of the steps' losses, each counted by its rows or their weights.
    double train_loss = 0;
    std::optional<Validation> validation{};  ///< of the same parameters as train_loss, unless that is a mean of steps
    std::int64_t head = 0;
  };
  virtual ~TrainingObserver() = default;
  virtual void on_step(const StepReport&) {}
  virtual void on_epoch(const EpochReport&) {}
};

struct TrainingResult {
  std::int64_t steps = 0, epochs = 0, rows = 0;
  std::vector<double> train_losses;  ///< of the heads' last epoch, as in EpochReport
};

/// The loop: batch, forward, loss, backward, all-reduce, update.
class Trainer {
 public:
  /// All outlive the trainer. Of a model with several heads each has an optimizer, in their order.
  Trainer(Device& device, DistributedDataParallel& replica, std::vector<Optimizer*> optimizers, BatchSource& source,
          TrainingObserver& observer);
  Trainer(Device& device, DistributedDataParallel& replica, Optimizer& optimizer, BatchSource& source,
          TrainingObserver& observer)
      : Trainer(device, replica, std::vector{&optimizer}, source, observer) {}

  /// Collective. Throws AgreedError(Status::failed) when no head has a finite loss, naming the step; heads that go on
  /// are not disturbed by those that diverged. On a device whose memory the host can't read the losses are looked at
  /// when they are reported: at each on_step and on_epoch.
  TrainingResult run(const TrainerOptions& options);

 private:
  /// Batches that one recording serves. The ranks record the same ones, as NCCL demands: nothing here differs between
  /// them but the address, and they take turns with memory in the same way.
  /// x, rows, the part of an update, how gradients are reduced
  using BatchKind = std::tuple<const float*, std::int64_t, std::int64_t, bool, bool, int>;
  struct BatchRuns {
    std::int64_t runs = 0;
    std::unique_ptr<Recording> recording;
  };

  /// The batches of a step of the optimizer, from this one on; returns the last.
  Step run_step(std::int64_t epoch, std::int64_t batch);
  void run_batch(const Step& step, int reduction);
  /// Of every head, with these losses, but for heads that were stopped. Whether they have come to rest.
  bool report(TrainingObserver::EpochReport report, const std::vector<double>& losses, const TrainerOptions& options);
  /// The epoch's, of `weight` in all.
  std::vector<double> mean_losses(double weight) const;
  /// Downloads losses_.
  void check_losses(std::int64_t step);

  Device& device_;
  DistributedDataParallel& replica_;
  std::vector<Optimizer*> optimizers_;  // [heads]
  std::vector<double> first_lrs_;
  BatchSource& source_;
  TrainingObserver& observer_;
  std::vector<float> losses_;  // of the last step
  Buffer<double> epoch_sums_;
  std::int64_t epochs_left_ = 0, steps_left_ = 0;
  std::vector<double> last_lrs_;
  std::vector<Validation> validations_;  // of the epoch before; empty: none
  std::vector<bool> stopped_;            // by a validation before that
  std::vector<double> train_losses_;     // of the last report; empty: none
  std::map<BatchKind, BatchRuns> recordings_;
};

}  // namespace ddp
