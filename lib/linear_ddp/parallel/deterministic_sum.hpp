#pragma once

#include <cstdint>
#include <vector>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/device/device.hpp>
#include <linear_ddp/nn/model.hpp>

namespace ddp {

/// A step's rows are divided into so many shards, whatever the number of ranks, and a rank has every ranks-th of them.
inline constexpr std::int64_t deterministic_shards = 64;

/// The order of a rank's `rows` rows in which its shards follow each other: row i of a step of one rank belongs to
/// shard i mod 64, and of several ranks, whose rows are dealt out in turn, likewise. visit(row)
template <class Visit>
void each_row_by_shard(std::int64_t rows, int ranks, const Visit& visit) {
  const std::int64_t own = deterministic_shards / ranks;
  for (std::int64_t shard = 0; shard < own; ++shard) {
    for (std::int64_t row = shard; row < rows; row += own) visit(row);
  }
}

/// Gradients that are the same to the bit for 1, 2, 4, … 64 ranks: those of each shard alone, added up in one fixed
/// tree, inside the ranks first and then between them.
class DeterministicSum {
 public:
  /// Throws UseError unless the number of ranks is a power of 2 up to 64. All outlive it.
  DeterministicSum(Device& device, ProcessGroup& group, Model& model);

  /// Collective. Model::backward of all ranks' batches, whose rows are in the order of each_row_by_shard, with the
  /// losses behind the gradients. With `add` the gradients are added to. Queued.
  void backward(const Batch& batch, float loss_scale, bool add);

 private:
  void add_up_shards(const Batch& batch, float loss_scale);
  void add_up_ranks();

  Device& device_;
  ProcessGroup& group_;
  Model& model_;
  std::span<float> sum_;                ///< the model's gradients and their tail
  std::vector<Buffer<float>> waiting_;  ///< sums of 1, 2, 4, … shards that wait for their like
  Buffer<float> before_;                ///< what is added to
  Buffer<float> own_, of_all_;          ///< a piece of this rank's sum, and of all ranks'
};

}  // namespace ddp
