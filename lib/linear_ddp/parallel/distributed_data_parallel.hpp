#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/device/device.hpp>
#include <linear_ddp/launch/world.hpp>
#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/parallel/communication_hook.hpp>
#include <linear_ddp/parallel/deterministic_sum.hpp>
#include <linear_ddp/parallel/gradient_shards.hpp>

namespace ddp {

/// How ranks' gradients are averaged. rows: every row of the step counts the same, whichever rank has it. ranks: the
/// mean of the ranks' own means, which is PyTorch's rule (equal when all ranks have equally many rows).
enum class Averaging { rows, ranks };

/// A batch's place among those of one step. With several the gradients add up, and only the last is reduced over the
/// ranks: gradient accumulation, under PyTorch's no_sync.
struct StepPart {
  bool first = true, last = true;
};

/// Layers whose gradients are reduced as one, from the last layer on: a bucket is closed by the layer that brings it to
/// so many MiB. torch's bucket_cap_mb, whose first bucket is smaller so that communication begins early.
struct BucketOptions {
  double cap_mb = 25, first_mb = 1;
};

/// Keeps the replicas of a model on all ranks equal: torch.nn.parallel.DistributedDataParallel.
///
///   DistributedDataParallel replica(world, device, group, model);
///   replica.backward(batch, global_rows);    // loss and gradients of the whole step, on every rank
///   optimizer.step();
class DistributedDataParallel {
 public:
  /// Collective. Throws AgreedError when the ranks' models differ in shape; then every replica becomes rank 0's.
  /// All four outlive this object.
  DistributedDataParallel(const World& world, Device& device, ProcessGroup& group, Model& model,
                          const BucketOptions& buckets = {});
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;
  ~DistributedDataParallel();

  /// Collective. The averaged gradients of this step, in model.gradients(), and its loss. The loss gradient is scaled
  /// once, at its source, so that the all-reduce is a plain sum: with `total` (of this step, over all ranks, the rows
  /// or, with row weights, their sum) by 1 / (total · outputs): the exact mean over rows, with any share of them on any
  /// rank, also none. Without, by PyTorch's rule: 1 / (own rows · outputs · ranks); a rank without rows then adds zero,
  /// as under PyTorch's Join. (Cross entropy: outputs count 1.) Queued.
  void backward(const Batch& batch, std::optional<double> total = std::nullopt, StepPart part = {});

  /// The host's half of a step, of which the device's may be recorded: for a caller that records, once before each
  /// step; else backward calls it. Steps with the same result queue the same work.
  int prepare();

  /// Collective. The second half of a step's backward alone: sums the gradients as they are, and the losses, over the
  /// ranks, buckets, hook and all. For one who computes, or times, the first half by himself. Queued.
  void reduce();

  /// From the next step on, gradients are summed over the ranks as the hook does it; the same on every rank.
  void register_comm_hook(std::unique_ptr<CommunicationHook> hook);

  /// From the next step on, the gradients' bits do not depend on the number of ranks; batches are in the order of
  /// each_row_by_shard. Takes the place of a hook. Throws UseError unless there are 1, 2, 4, … 64 ranks.
  void make_deterministic() { deterministic_.emplace(device_, group_, model_); }

  /// From the next step on, gradients are reduced in shards, one for each rank, and the result is what an optimizer of
  /// this rank's works on (GradientOptions::shard); the gradients that model.gradients() has are then this rank's own.
  /// Takes the place of a hook. The model was made for as many shards as there are ranks.
  [[nodiscard]] OptimizerShard shard_optimizer();

  /// Loss of the last backward: the mean over the step's rows (or of the ranks' means), of the first head. Waits.
  [[nodiscard]] float loss();
  /// Those of so many heads, from the first on. Waits.
  void losses(std::span<float> values);
  /// The same values, of all heads, in the device's memory.
  [[nodiscard]] const float* losses_on_device() noexcept { return tail_of_step().data(); }

  /// Asks all ranks to stop, in the all-reduce of the next backward: no collective of its own. Queued.
  void request_stop();
  /// Whether any rank had asked for it when the last backward began: all ranks are told the same. It stays so. Waits.
  [[nodiscard]] bool stop_requested();

  [[nodiscard]] Model& model() noexcept { return model_; }

  /// Collective. A 64-bit hash of the parameters' bytes. Throws AgreedError naming the ranks whose replicas differ from
  /// rank 0's. Waits.
  std::uint64_t require_equal_replicas();

 private:
  void start_buckets(std::int64_t ready_from);
  void finish_buckets();
  [[nodiscard]] std::span<float> tail_of_step();

  const World& world_;
  Device& device_;
  ProcessGroup& group_;
  Model& model_;
  void* registration_ = nullptr;  // of the gradients, with the group
  std::vector<GradientBucket> buckets_;
  std::size_t started_ = 0;  // of this step's buckets
  std::int64_t steps_ = 0;
  bool prepared_ = false;
  std::unique_ptr<CommunicationHook> hook_;
  std::optional<DeterministicSum> deterministic_;
  std::optional<GradientShards> shards_;
};

}  // namespace ddp
