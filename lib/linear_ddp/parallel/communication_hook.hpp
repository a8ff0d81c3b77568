#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/device/device.hpp>
#include <linear_ddp/nn/model.hpp>

namespace ddp {

/// A contiguous part of a model's gradients, reduced over the ranks as one.
struct GradientBucket {
  std::size_t index = 0;  ///< in the order in which they become ready: the last layer's first
  std::int64_t offset = 0;
  std::span<float> gradients;  ///< in the device's memory, [offset, offset + size) of the flat buffer
};

/// How gradients are summed over the ranks: torch's DDP communication hook. The gradients are already divided by the
/// rows (or ranks), so that a plain sum is the mean. Both calls queue work; after the second the compute queue goes on
/// with the sums in the bucket. Under a GPU's recording memory may only be made in the first steps.
class CommunicationHook {
 public:
  virtual ~CommunicationHook() = default;
  /// Once before each step, which is the number of steps before it. Steps for which this returns the same queue the
  /// same work: a recording of one serves the others.
  virtual int prepare(std::int64_t step) {
    static_cast<void>(step);
    return 0;
  }
  /// The compute queue has been given the work that makes the bucket, and goes on with other layers' backward pass.
  virtual void start(ProcessGroup& group, const GradientBucket& bucket) = 0;
  /// All buckets of the step are started, in the same order on every rank, and the compute queue waits for what they
  /// gave to the communication queue.
  virtual void finish(ProcessGroup& group, const GradientBucket& bucket) = 0;
};

/// Gradients travel as numbers of 16 bits, half the bytes, and are summed in them: torch's fp16_compress_hook and
/// bf16_compress_hook. The device outlives the hook.
[[nodiscard]] std::unique_ptr<CommunicationHook> make_half_hook(Device& device, HalfType type);

struct PowerSgdOptions {
  std::int64_t rank = 1;            ///< of the approximation
  std::int64_t start_step = 1000;   ///< of so many steps before, gradients are summed as they are
  double min_compression_rate = 2;  ///< weights are sent whole unless this many times less is sent
  std::uint64_t seed = 0;           ///< of the first Q
};

/// Weight gradients travel as products of two thin matrices: T. Vogels, S. P. Karimireddy, M. Jaggi, "PowerSGD:
/// Practical Low-Rank Gradient Compression for Distributed Optimization", 2019, with error feedback and warm start, as
/// torch's powerSGD_hook and its defaults. What is not sent of a step's gradients is added to the next one's. Keeps as
/// many numbers again as there are weights. Device and model outlive the hook. Throws UseError for a rank or a start
/// below 1.
[[nodiscard]] std::unique_ptr<CommunicationHook> make_powersgd_hook(Device& device, Model& model,
                                                                    const PowerSgdOptions& options);

}  // namespace ddp
