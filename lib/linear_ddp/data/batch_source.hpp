#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/data/sampler.hpp>
#include <linear_ddp/device/device.hpp>
#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include <linear_ddp/parallel/distributed_data_parallel.hpp>

namespace ddp {

/// A batch of this rank's, on the device, and what it is a part of. Valid until the next one is asked for.
struct Step {
  Batch batch;
  StepPart part;                 ///< of the optimizer's step
  std::int64_t global_rows = 0;  ///< of all ranks, in this batch …
  std::int64_t update_rows = 0;  ///< … and in all batches of the optimizer's step
  double divisor = 0;            ///< for DistributedDataParallel::backward
  double weight = 0;             ///< of all rows of the optimizer's step: what its loss counts in a mean over an epoch
};

/// Where a training takes its batches from. Every rank has as many in an epoch as the others.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  [[nodiscard]] virtual std::int64_t batches_per_epoch() const = 0;
  /// How many of them make one step of the optimizer; an epoch's last step may have fewer.
  [[nodiscard]] virtual std::int64_t accumulate() const = 0;
  [[nodiscard]] std::int64_t steps_per_epoch() const {
    return batches_per_epoch() / accumulate() + (batches_per_epoch() % accumulate() == 0 ? 0 : 1);
  }
  /// Rows of all ranks in an epoch.
  [[nodiscard]] virtual std::int64_t rows_per_epoch() const = 0;
  /// Whether each epoch is one step over the same rows, averaged over rows: the loss of a step is then the loss over
  /// all the data.
  [[nodiscard]] virtual bool one_step_over_all_rows() const = 0;
  /// Before the first load, which will be of this batch: for trainings that go on. Synthetic data draws all before it.
  virtual void start_at(std::int64_t epoch, std::int64_t batch) = 0;
  /// Batch 0 <= batch < batches_per_epoch() of an epoch; asked for in order. The compute queue may use it at once. On
  /// every rank batches take turns with memory in the same way, and those of equally many global rows have equally many
  /// rows.
  [[nodiscard]] virtual Step load(std::int64_t epoch, std::int64_t batch) = 0;
  /// A hint: the work on the batch loaded last begins, and this one will be asked for next. What is in files is read
  /// meanwhile.
  virtual void read_ahead(std::int64_t epoch, std::int64_t batch) = 0;
  /// A hint: that work is queued. A device that works while the host goes on gets the next batch meanwhile.
  virtual void prepare(std::int64_t epoch, std::int64_t batch) = 0;
};

struct BatchOptions {
  SamplerOptions sampler = {};  ///< its rows are of no account: they are the data's
  std::int64_t accumulate = 1;  ///< batches for each step of the optimizer
  Averaging averaging = Averaging::rows;
  /// For cross entropy over classes of unequal weight: a row counts its weight times that of its class in every mean.
  std::vector<float> class_weight = {};
};

/// The rows that a sampler deals out, gathered into memory that the device copies from. When all rows fit in one step
/// they are gathered once and stay there. Throws UseError when an epoch would have no step. The device and the data
/// outlive it.
[[nodiscard]] std::unique_ptr<BatchSource> make_dataset_batches(Device& device, const Dataset& data,
                                                                const BatchOptions& options);

/// randn inputs and targets, drawn anew at each step as the original program would: first x, then y, from `generator`,
/// which every rank has seeded otherwise. One epoch is `batches` batches of `rows` rows on each of `ranks` ranks.
[[nodiscard]] std::unique_ptr<BatchSource> make_synthetic_batches(Device& device, TorchGenerator generator,
                                                                  const LinearShape& shape, std::int64_t rows,
                                                                  std::int64_t batches, std::int64_t accumulate,
                                                                  int ranks);

}  // namespace ddp
