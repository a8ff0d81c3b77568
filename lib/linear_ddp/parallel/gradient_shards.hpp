#pragma once

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/device/device.hpp>
#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/optim/optimizer.hpp>

namespace ddp {

/// ZeRO's first stage (S. Rajbhandari, J. Rasley, O. Ruwase, Y. He, "ZeRO: Memory Optimizations Toward Training
/// Trillion Parameter Models", 2020): the flat buffers are cut into as many equal ranges as there are ranks, each rank
/// gets the summed gradients of its own, keeps optimizer state for it alone, and sends the others its updated
/// parameters. The last ranges may be short, or empty.
class GradientShards {
 public:
  /// The model was made for as many shards as the group has ranks. All outlive it.
  GradientShards(Device& device, ProcessGroup& group, Model& model);

  /// Collective. This rank's range of the gradients, summed over the ranks. Queued.
  void reduce();
  /// What an optimizer of this rank's range works on.
  [[nodiscard]] OptimizerShard optimizer_shard();

 private:
  void add_up(double* sum);
  void gather_parameters();

  Device& device_;
  ProcessGroup& group_;
  Model& model_;
  std::int64_t numel_, begin_;
  Buffer<float> gradients_;
};

}  // namespace ddp
