#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

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
  std::function<double(std::int64_t done)> lr;  ///< of the step after so many; empty: as the optimizer has it
  std::int64_t log_every = 0;                   ///< steps between on_step calls; 0: none
  /// Collective: the loss over all training rows, for EpochReport; empty: the mean over the epoch's rows is reported.
  std::function<double()> evaluate;
  /// Collective, after each epoch; every rank gets the same. Empty: none.
  std::function<Validation(std::int64_t epoch)> validate;
  /// Ends the training when an epoch changes its train_loss by no more than so much of it; below 0: never. When one
  /// step is all the data the next one, which finds out, is done then.
  double tolerance = -1;
};

/// What a training tells while it runs; every rank calls its own with the same values.
class TrainingObserver {
 public:
  struct StepReport {
    std::int64_t step, epoch;  ///< step counts from 1
    float loss;                ///< of the parameters before the step's update
    double lr;
    std::int64_t rows;  ///< of all ranks
  };
  struct EpochReport {
    std::int64_t epoch, step;
    double lr;  ///< of its last step
    /// Of the parameters after the epoch, over all rows, when TrainerOptions::evaluate is given or one step is all the
    /// data and averages over rows; else the mean of the steps' losses, each counted by its rows or their weights.
    double train_loss;
    std::optional<Validation> validation;  ///< of the same parameters as train_loss, unless that is a mean of steps
  };
  virtual ~TrainingObserver() = default;
  virtual void on_step(const StepReport&) {}
  virtual void on_epoch(const EpochReport&) {}
};

struct TrainingResult {
  std::int64_t steps = 0, epochs = 0, rows = 0;
  double last_epoch_loss = 0;  ///< as in EpochReport
};

/// The loop: batch, forward, loss, backward, all-reduce, update.
class Trainer {
 public:
  /// All outlive the trainer.
  Trainer(Device& device, DistributedDataParallel& replica, Optimizer& optimizer, BatchSource& source,
          TrainingObserver& observer);

  /// Collective. Throws AgreedError(Status::failed) at the first loss that is not finite, naming the step. On a device
  /// whose memory the host can't read the loss is looked at when it is reported: at each on_step and on_epoch.
  TrainingResult run(const TrainerOptions& options);

 private:
  /// Batches that one recording serves. The ranks record the same ones, as NCCL demands: nothing here differs between
  /// them but the address, and they take turns with memory in the same way.
  using BatchKind = std::tuple<const float*, std::int64_t, std::int64_t, bool, bool>;  // x, rows, the part of an update
  struct BatchRuns {
    std::int64_t runs = 0;
    std::unique_ptr<Recording> recording;
  };

  /// The batches of a step of the optimizer, from this one on; returns the last.
  Step run_step(std::int64_t epoch, std::int64_t batch);
  void run_batch(const Step& step);
  /// Whether the training loss has come to rest.
  bool report(TrainingObserver::EpochReport report, const TrainerOptions& options);

  float checked_loss(std::int64_t step);

  Device& device_;
  DistributedDataParallel& replica_;
  Optimizer& optimizer_;
  BatchSource& source_;
  TrainingObserver& observer_;
  Buffer<double> epoch_sum_;
  std::int64_t epochs_left_ = 0, steps_left_ = 0;
  std::optional<Validation> validation_;  // of the epoch before
  double last_loss_ = 0;                  // likewise
  std::map<BatchKind, BatchRuns> recordings_;
};

}  // namespace ddp
