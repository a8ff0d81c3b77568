#pragma once

#include <cstdint>
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
};

/// Which rows each rank uses at each step: a function of (rows, seed, epoch) alone, known to every rank without
/// communication. The order of an epoch is torch.randperm with seed + epoch; step s takes its rows
/// [s·B, (s+1)·B), and row i of the order goes to rank i mod ranks, as torch.utils.data.DistributedSampler deals them.
class DistributedSampler {
 public:
  /// Throws UseError when an option is out of range.
  explicit DistributedSampler(const SamplerOptions& options);

  /// Every epoch has another order. Starts at 0.
  void set_epoch(std::int64_t epoch);

  [[nodiscard]] std::int64_t steps() const noexcept;
  /// This rank's rows of step s (0 <= s < steps()), in order; may be empty.
  [[nodiscard]] std::span<const std::int64_t> rows_of_step(std::int64_t step) const;
  /// How many rows all ranks together use at step s.
  [[nodiscard]] std::int64_t global_rows(std::int64_t step) const noexcept;

 private:
  /// Of the places below `place` in the epoch's order, how many are this rank's.
  [[nodiscard]] std::int64_t own_places_below(std::int64_t place) const noexcept;

  SamplerOptions options_;
  std::int64_t total_ = 0;         // length of an epoch's order, after padding or dropping
  std::vector<std::int64_t> own_;  // this rank's rows of the epoch
};

}  // namespace ddp
