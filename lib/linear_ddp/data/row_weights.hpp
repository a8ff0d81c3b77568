#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <linear_ddp/data/batch_source.hpp>

namespace ddp {

/// The batches [first, end) of an epoch that make one step of the optimizer.
struct Update {
  std::int64_t first, end;
  [[nodiscard]] std::int64_t batches() const { return end - first; }
  [[nodiscard]] StepPart part(std::int64_t batch) const { return {batch == first, batch + 1 == end}; }
};

[[nodiscard]] constexpr Update update_of(std::int64_t batch, std::int64_t batches, std::int64_t accumulate) {
  const std::int64_t first = batch - batch % accumulate;
  return {first, std::min(first + accumulate, batches)};
}

/// What the rows of a data set count, and what of them a batch needs.
class RowWeights {
 public:
  RowWeights(const Dataset& data, const BatchOptions& options)
      : data_(data),
        class_weight_(options.class_weight),
        averaging_(options.averaging),
        ranks_(options.sampler.ranks) {}

  [[nodiscard]] bool uneven() const { return !data_.weights.empty() || !class_weight_.empty(); }
  [[nodiscard]] double of(std::int64_t row) const {
    const auto at = static_cast<std::size_t>(row);
    const double own_class = class_weight_.empty() ? 1.0 : class_weight_.at(static_cast<std::size_t>(data_.y[at]));
    return own_class * (data_.weights.empty() ? 1.0 : static_cast<double>(data_.weights[at]));
  }

  /// What the losses of a batch are divided by, in an update of `weight` in all: by PyTorch's rule, the rank's own
  /// rows.
  [[nodiscard]] double divisor(std::span<const std::int64_t> rows, const Update& update, double weight) const {
    if (averaging_ == Averaging::rows) return weight;
    double own = 0;
    for (const std::int64_t row : rows) own += uneven() ? of(row) : 1.0;
    return own * static_cast<double>(ranks_ * update.batches());
  }

  /// The losses' factors. A step's sum of weights would differ from step to step, where a recorded step has fixed
  /// numbers: so the factors are divided here. (The class's weight is the loss's.)
  void write(std::span<const std::int64_t> rows, double divisor, float* factors) const {
    for (const std::int64_t row : rows) {
      const double own =
          data_.weights.empty() ? 1.0 : static_cast<double>(data_.weights[static_cast<std::size_t>(row)]);
      *factors++ = divisor == 0 ? 0.0F : static_cast<float>(own / divisor);
    }
  }

 private:
  const Dataset& data_;
  std::vector<float> class_weight_;
  Averaging averaging_;
  std::int64_t ranks_;
};

}  // namespace ddp
