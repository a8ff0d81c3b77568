#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/data/sampler.hpp>
#include <linear_ddp/device/device.hpp>
#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/nn/torch_generator.hpp>

namespace ddp {

/// This rank's part of one step, on the device, and the rows all ranks have in it. Valid until the next step is asked
/// for.
struct Step {
  Batch batch;
  std::int64_t global_rows = 0;
};

/// Where a training takes its steps from. Every rank has as many steps in an epoch as the others.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  [[nodiscard]] virtual std::int64_t steps_per_epoch() const = 0;
  /// Rows of all ranks in an epoch.
  [[nodiscard]] virtual std::int64_t rows_per_epoch() const = 0;
  /// Whether each epoch is one step over the same rows: the loss of a step is then the loss over all the data.
  [[nodiscard]] virtual bool one_step_over_all_rows() const = 0;
  /// Step 0 <= step < steps_per_epoch() of an epoch; asked for in order. The compute queue may use it at once. On every
  /// rank steps take turns with memory in the same way, and steps of equally many global rows have equally many rows.
  [[nodiscard]] virtual Step load(std::int64_t epoch, std::int64_t step) = 0;
  /// A hint: the work on the step loaded last is queued, and this step will be asked for next. A device that works
  /// while the host goes on gets it meanwhile.
  virtual void prepare(std::int64_t epoch, std::int64_t step) = 0;
};

/// The rows that a sampler deals out, gathered into memory that the device copies from. When all rows fit in one step
/// they are gathered once and stay there. sampler.rows is of no account: it is data.rows. Throws UseError when an epoch
/// would have no step. The device and the data outlive it.
[[nodiscard]] std::unique_ptr<BatchSource> make_dataset_batches(Device& device, const Dataset& data,
                                                                const SamplerOptions& sampler);

/// randn inputs and targets, drawn anew at each step as the original program would: first x, then y, from `generator`,
/// which every rank has seeded otherwise. One epoch is `steps` steps of `rows` rows on each of `ranks` ranks.
[[nodiscard]] std::unique_ptr<BatchSource> make_synthetic_batches(Device& device, TorchGenerator generator,
                                                                  const LinearShape& shape, std::int64_t rows,
                                                                  std::int64_t steps, int ranks);

}  // namespace ddp
