#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <string>

#include <linear_ddp/parallel/distributed_data_parallel.hpp>
#include <linear_ddp/training/checkpoint.hpp>
#include <linear_ddp/training/trainer.hpp>
#include "console.hpp"
#include "plan.hpp"
#include "stop_signals.hpp"

/// --checkpoint, and what stops a training before its end.
namespace ddp::app {

/// Before hours of work: makes the folder, and finds out whether it can be written to. Throws Error, and UseError when
/// it has checkpoints and there is no --resume.
void require_checkpoint_folder(const CheckpointOptions& options);

/// What must be equal for a training to go on from a checkpoint, by the name to tell it by: options, and sizes of the
/// data. Not what may change: files' places, how long and how fast to train, what is printed.
[[nodiscard]] nlohmann::ordered_json identity_of(const TrainOptions& options, const Plan& plan,
                                                 const std::optional<TrainingData>& data);

/// Saves a training's state from rank 0, in a thread of its own: the training waits until it has been copied, and no
/// longer. An error stops all ranks at the same step, and a signal to any rank does.
class Checkpoints {
 public:
  /// `exchange` is of all the training's state. All outlive it. Without --checkpoint only SIGINT is looked for.
  Checkpoints(const World& world, const CheckpointOptions& options, Console& console, DistributedDataParallel& replica,
              nlohmann::ordered_json identity, std::function<void(Checkpoint&)> exchange);

  /// Collective. With --resume: gives the training the newest complete checkpoint of the folder, if it has any. Throws
  /// AgreedError: it is another training's, or beyond its last step, or there are checkpoints and none is complete.
  void resume(std::int64_t total_steps);
  /// For TrainerOptions.
  bool between_steps(std::int64_t step, bool last);
  /// Collective, when the training has ended: waits for what is being written. Throws AgreedError when it could not be.
  void finish();
  /// Collective, after finish, of a training that was interrupted: the end event, and the status to end with.
  [[nodiscard]] Status report_stop(const TrainingResult& result, double seconds);

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool writes() const { return !options_.folder.empty() && world_.rank() == 0; }
  [[nodiscard]] bool is_due(std::int64_t step);
  /// Copies the state of this step, and begins to write it when the one before is written.
  void save(std::int64_t step);
  /// Waits for what is being written, and tells of it.
  void finish_writing();
  [[nodiscard]] std::string newest(std::int64_t total_steps);
  void require_same_training(const Checkpoint& state, std::int64_t total_steps);

  const World& world_;
  const CheckpointOptions& options_;
  Console& console_;
  DistributedDataParallel& replica_;
  nlohmann::ordered_json identity_;
  std::function<void(Checkpoint&)> exchange_;
  StopSignals signals_;
  Clock::time_point last_save_ = Clock::now();
  std::int64_t saved_step_ = -1;
  std::string saved_;  // the last that is complete
  std::future<void> writing_;
  std::exception_ptr failure_;
  std::uint64_t hash_ = 0;
};

}  // namespace ddp::app
