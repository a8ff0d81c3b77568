#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/device/device.hpp>
#include <linear_ddp/launch/world.hpp>
#include <linear_ddp/nn/model.hpp>

namespace ddp {

/// How ranks' gradients are averaged. rows: every row of the step counts the same, whichever rank has it. ranks: the
/// mean of the ranks' own means, which is PyTorch's rule (equal when all ranks have equally many rows).
enum class Averaging { rows, ranks };

/// A batch's place among those of one step. With several the gradients add up, and only the last is reduced over the
/// ranks: gradient accumulation, under PyTorch's no_sync.
struct StepPart {
  bool first = true, last = true;
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
  DistributedDataParallel(const World& world, Device& device, ProcessGroup& group, Model& model);
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;
  ~DistributedDataParallel();

  /// Collective. The averaged gradients of this step, in model.gradients(), and its loss. The loss gradient is scaled
  /// once, at its source, so that the all-reduce is a plain sum: with `total` (of this step, over all ranks, the rows
  /// or, with row weights, their sum) by 1 / (total · outputs): the exact mean over rows, with any share of them on any
  /// rank, also none. Without, by PyTorch's rule: 1 / (own rows · outputs · ranks); a rank without rows then adds zero,
  /// as under PyTorch's Join. (Cross entropy: outputs count 1.) Queued.
  void backward(const Batch& batch, std::optional<double> total = std::nullopt, StepPart part = {});

  /// Loss of the last backward: the mean over the step's rows (or of the ranks' means), of the first head. Waits.
  [[nodiscard]] float loss();
  /// Those of so many heads, from the first on. Waits.
  void losses(std::span<float> values);
  /// The same values, of all heads, in the device's memory.
  [[nodiscard]] const float* losses_on_device() noexcept { return model_.gradients().data() + model_.layout().numel(); }

  /// Asks all ranks to stop, in the all-reduce of the next backward: no collective of its own. Queued.
  void request_stop();
  /// Whether any rank had asked for it when the last backward began: all ranks are told the same. It stays so. Waits.
  [[nodiscard]] bool stop_requested();

  [[nodiscard]] Model& model() noexcept { return model_; }

  /// Collective. A 64-bit hash of the parameters' bytes. Throws AgreedError naming the ranks whose replicas differ from
  /// rank 0's. Waits.
  std::uint64_t require_equal_replicas();

 private:
  const World& world_;
  Device& device_;
  ProcessGroup& group_;
  Model& model_;
  void* registration_ = nullptr;  // of the gradients, with the group
};

}  // namespace ddp
