#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/launch/watchdog.hpp>
#include <linear_ddp/nn/layout.hpp>
#include "options.hpp"

namespace ddp::app {

struct BenchShape {
  std::int64_t rows = 20;  ///< of each rank
  LinearShape layers;
};

/// Seconds of one call, medians over the rounds of the slowest rank's.
struct StepTimes {
  double step = 0;  ///< as the trainer makes it
  double backward = 0, reduce = 0,
         update = 0;                ///< its parts, each alone: with the loss; buckets, hook and all; and last
  double products = 0;              ///< the layers' bare products, see LinearProducts
  double sum = 0;                   ///< one all-reduce of as many bytes as there are gradients
  double copy = 0;                  ///< of a batch's inputs
  std::optional<double> launch;     ///< on GPUs: of a recording of one smallest kernel
  double ratio = 0;                 ///< step / (products + sum), the median of the rounds' own
  std::uint64_t reduced_bytes = 0;  ///< that a rank gives to the all-reduce in a step
  std::int64_t parameters = 0;

  /// How much of the all-reduce is hidden behind the rest of a step, from 0 to 1.
  [[nodiscard]] double overlap() const;
};

struct BenchJob {
  const World& world;
  Device& device;
  ProcessGroup& group;
  Watchdog& watchdog;
  const BenchOptions& options;
};

/// Collective. Times all parts in turns, so that noise hits all alike, on random values. Throws AgreedError when there
/// is not enough memory, or the loss is no longer finite.
[[nodiscard]] StepTimes time_step(const BenchJob& job, const BenchShape& shape);

}  // namespace ddp::app
