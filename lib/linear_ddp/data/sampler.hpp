#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace ddp {

struct SamplerOptions {
  std::int64_t rows = 0;  ///< of the data set
  int rank = 0, ranks = 1;
  std::int64_t global_batch = 0;  ///< rows over all ranks at each step, 1 or more
  bool shuffle = true;
  std::uint64_t seed = 0;
  /// What an epoch's order loses at its end. Without repeat: the last step, when it would be smaller than global_batch;
  /// steps() is rows / global_batch rounded down, and may be 0. With repeat: what torch's DistributedSampler drops,
  /// rows mod ranks rows, instead of repeating any; the last step may still be smaller than global_batch.
  bool drop_last = false;
  /// Off: an epoch uses each row once; ranks short of a row take part in the step with fewer rows, or none. On:
  /// PyTorch's padding, rows from the start of the order are used again until every rank has equally many in the epoch.
  /// The steps are then PyTorch's when global_batch is a multiple of ranks.
  bool repeat = false;
  /// A rank's rows of a step are in the order of each_row_by_shard.
  bool by_shards = false;
  /// What a row counts in the step's mean; empty: 1.
  std::function<double(std::int64_t row)> weight = {};
};

/// Which rows each rank uses at each step: a function of the options and the epoch, known to every rank without
/// communication. The order of an epoch is torch.randperm with seed + epoch; step s takes its places
/// [s·B, (s+1)·B), and place s·B + i goes to rank i mod ranks. With B a multiple of ranks these are the steps of
/// torch.utils.data.DistributedSampler; otherwise, too, all full steps have the same number of rows on a rank.
class DistributedSampler {
 public:
  /// Throws UseError when an option is out of range.
  explicit DistributedSampler(const SamplerOptions& options);

  /// Every epoch has another order. Starts at 0.
  void set_epoch(std::int64_t epoch);

  [[nodiscard]] std::int64_t steps() const noexcept;
  /// How many rows all ranks together use in an epoch.
  [[nodiscard]] std::int64_t rows_per_epoch() const noexcept { return total_; }
  /// This rank's rows of step s (0 <= s < steps()), in order; may be empty.
  [[nodiscard]] std::span<const std::int64_t> rows_of_step(std::int64_t step) const;
  /// The number of this rank's rows in the step that has most of them.
  [[nodiscard]] std::int64_t most_rows_of_step() const noexcept {
    return static_cast<std::int64_t>(own_rows(global_rows(0)));
  }
  /// How many rows all ranks together use at step s.
  [[nodiscard]] std::int64_t global_rows(std::int64_t step) const noexcept;
  /// The sum of their weights.
  [[nodiscard]] double global_weight(std::int64_t step) const;

 private:
  /// This rank's rows in a step of so many.
  [[nodiscard]] std::size_t own_rows(std::int64_t global_rows) const noexcept;

  SamplerOptions options_;
  std::int64_t epoch_ = -1;
  std::int64_t total_ = 0;         // length of an epoch's order, after padding or dropping
  std::vector<std::int64_t> own_;  // this rank's rows of the epoch
  std::vector<double> weights_;    // of the epoch's steps; empty when every row counts 1
};

}  // namespace ddp
