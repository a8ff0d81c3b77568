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
#include <linear_ddp/training/checkpoint.hpp>

namespace ddp {

/// What the parameters are worth after an epoch, on data that they are not trained on.
struct Validation {
  double loss, score;  ///< as in Scores
  bool stops = false;  ///< that it was the training's last epoch
};

struct TrainerOptions {
  std::int64_t epochs = 1;
  std::int64_t max_steps = std::numeric_limits<std::int64_t>::max();  ///< of the optimizer, from the first of all on
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
  /// On every rank, wherever the training can go on from (see Trainer::exchange): after each step or, when it ends an
  /// epoch, after the epoch's validation and report. `last`: the training ends here. Returns whether this rank wants it
  /// to be interrupted; all ranks then stop at the same step, the first whose loss is looked at. Empty: none.
  std::function<bool(std::int64_t step, bool last)> between_steps;
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
  std::int64_t steps = 0, epochs = 0;  ///< from the first of all on
  std::int64_t rows = 0;               ///< of this run
  std::vector<double> train_losses;    ///< of the heads' last epoch, as in EpochReport
  bool interrupted = false;            ///< before it was complete: the epoch's end has been left out
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
  /// when they are reported, at each on_step and on_epoch, and every 100 steps.
  TrainingResult run(const TrainerOptions& options);

  /// All that a training needs to go on as if it had never stopped: parameters, the optimizers' memories, and where the
  /// loop is. Takes it up between two steps, or gives it back before run(), to a trainer of an equal training on any
  /// number of ranks. Waits. Throws Error when the state is another training's.
  void exchange(Checkpoint& state);

 private:
  /// Batches that one recording serves. The ranks record the same ones, as NCCL demands: nothing here differs between
  /// them but the address, and they take turns with memory in the same way.
  /// x, rows, the part of an update, how gradients are reduced
  using BatchKind = std::tuple<const float*, std::int64_t, std::int64_t, bool, bool, int>;
  struct BatchRuns {
    std::int64_t runs = 0;
    std::unique_ptr<Recording> recording;
  };

  /// What a run has come to, besides the parameters and the optimizers' memories.
  struct Progress {
    std::int64_t steps = 0;
    bool stops = false;                   // before the epochs or steps are all done
    double epoch_weight = 0;              // of epoch_sums_
    std::vector<double> lrs;              // of the last step
    std::vector<Validation> validations;  // of the epoch before; empty: none
    std::vector<bool> stopped;            // by a validation before that
    std::vector<double> train_losses;     // of the last report; empty: none
  };

  /// The steps of an epoch, from one of them on, and its end. False when it was interrupted.
  bool run_epoch(std::int64_t epoch, std::int64_t first_step, const TrainerOptions& options, TrainingResult& result);
  /// Between two steps. False when the training is interrupted here.
  bool goes_on(const TrainerOptions& options, bool complete);
  /// The batches of a step of the optimizer, from this one on; returns the last.
  Step run_step(std::int64_t epoch, std::int64_t batch);
  void run_batch(const Step& step, int reduction);
  /// Of every head, with these losses, but for heads that were stopped. Whether they have come to rest.
  bool report(TrainingObserver::EpochReport report, const std::vector<double>& losses, const TrainerOptions& options);
  /// The epoch's, of `weight` in all.
  std::vector<double> mean_losses(double weight) const;
  /// Downloads losses_, and whether a rank wants to stop.
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
  bool stop_requested_ = false;
  Progress now_;
  std::map<BatchKind, BatchRuns> recordings_;
};

}  // namespace ddp
