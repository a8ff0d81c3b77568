#include <linear_ddp/data/batch_source.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <linear_ddp/base/checked.hpp>

namespace ddp {
namespace {

void gather(const SharedArray& values, std::int64_t columns, std::span<const std::int64_t> rows, float* target) {
  for (const std::int64_t row : rows) target = std::copy_n(values.data() + row * columns, columns, target);
}

/// Batches that are made on the host, each anew. While the device works on one, the next is made and sent to a second
/// buffer; where host and device are one, there is nothing to gain, and one buffer.
class StagedBatches : public BatchSource {
 public:
  Step load(std::int64_t epoch, std::int64_t step) final {
    if (!prepared_) make(epoch, step);
    prepared_ = false;
    device_.wait(Queue::compute, Queue::copy);
    // The next copy overwrites what the step before this one has read.
    device_.wait(Queue::copy, Queue::compute);
    const auto* x = static_cast<const float*>(buffers_[current_]->device());
    return {{made_.rows, x, x + target_offset_}, made_.global_rows};
  }

  void prepare(std::int64_t epoch, std::int64_t step) final {
    if (buffers_.size() > 1) make(epoch, step);
  }

 protected:
  struct Rows {
    std::int64_t rows, global_rows;
  };

  /// For at most so many rows of this rank in a step.
  StagedBatches(Device& device, std::int64_t rows, std::int64_t in, std::int64_t out)
      : device_(device), target_offset_(round_up(numel(rows, in), std::int64_t{64 / sizeof(float)})) {
    // No sum of two int64_t is beyond size_t; its bytes may be.
    const auto values = static_cast<std::size_t>(target_offset_) + static_cast<std::size_t>(numel(rows, out));
    const std::size_t bytes = checked_product(values, sizeof(float), "the bytes of a batch");
    for (int i = 0; i < (device.memory_is_host() ? 1 : 2); ++i) buffers_.push_back(device.make_staging_buffer(bytes));
  }

  /// Writes x [rows, in] and the targets [rows, out] of a step.
  virtual Rows fill(std::int64_t epoch, std::int64_t step, float* x, float* target) = 0;

 private:
  static std::int64_t numel(std::int64_t rows, std::int64_t columns) {
    return checked_product(rows, columns, "the values of a batch, rows times columns");
  }

  void make(std::int64_t epoch, std::int64_t step) {
    current_ = (current_ + 1) % buffers_.size();
    auto* x = static_cast<float*>(buffers_[current_]->host());
    made_ = fill(epoch, step, x, x + target_offset_);
    buffers_[current_]->send();
    prepared_ = true;
  }

  Device& device_;
  std::int64_t target_offset_;
  std::vector<std::unique_ptr<StagingBuffer>> buffers_;
  std::size_t current_ = 0;
  Rows made_{};
  bool prepared_ = false;
};

class DatasetBatches final : public StagedBatches {
 public:
  DatasetBatches(Device& device, const Dataset& data, DistributedSampler sampler)
      : StagedBatches(device, sampler.most_rows_of_step(), data.in, data.out),
        data_(data),
        sampler_(std::move(sampler)) {}

  std::int64_t steps_per_epoch() const override { return sampler_.steps(); }
  bool one_step_over_all_rows() const override { return false; }
  std::int64_t rows_per_epoch() const override { return sampler_.rows_per_epoch(); }

 private:
  Rows fill(std::int64_t epoch, std::int64_t step, float* x, float* target) override {
    if (step == 0) sampler_.set_epoch(epoch);
    const auto rows = sampler_.rows_of_step(step);
    gather(data_.x, data_.in, rows, x);
    gather(data_.y, data_.out, rows, target);
    return {static_cast<std::int64_t>(rows.size()), sampler_.global_rows(step)};
  }

  const Dataset& data_;
  DistributedSampler sampler_;
};

/// The order of the rows does not change a sum over all of them: the first epoch's stays on the device.
class AllRows final : public BatchSource {
 public:
  AllRows(Device& device, const Dataset& data, const DistributedSampler& sampler) : global_rows_(data.rows) {
    const auto rows = sampler.rows_of_step(0);
    x_ = upload(device, data.x, data.in, rows);
    target_ = upload(device, data.y, data.out, rows);
    batch_ = {static_cast<std::int64_t>(rows.size()), x_.data(), target_.data()};
  }

  std::int64_t steps_per_epoch() const override { return 1; }
  std::int64_t rows_per_epoch() const override { return global_rows_; }
  bool one_step_over_all_rows() const override { return true; }
  Step load(std::int64_t, std::int64_t) override { return {batch_, global_rows_}; }
  void prepare(std::int64_t, std::int64_t) override {}

 private:
  static Buffer<float> upload(Device& device, const SharedArray& values, std::int64_t columns,
                              std::span<const std::int64_t> rows) {
    Buffer<float> result(device, static_cast<std::int64_t>(rows.size()) * columns);
    const auto piece_rows = static_cast<std::size_t>(
        std::max<std::int64_t>(1, (std::int64_t{1} << 20) / std::max<std::int64_t>(1, columns)));
    std::vector<float> piece(std::min(piece_rows, rows.size()) * static_cast<std::size_t>(columns));
    float* target = result.data();
    for (std::size_t row = 0; row < rows.size(); row += piece_rows) {
      const auto some = rows.subspan(row, std::min(piece_rows, rows.size() - row));
      gather(values, columns, some, piece.data());
      const std::size_t numel = some.size() * static_cast<std::size_t>(columns);
      device.upload(target, piece.data(), numel * sizeof(float));
      target += numel;
    }
    return result;
  }

  std::int64_t global_rows_;
  Buffer<float> x_, target_;
  Batch batch_;
};

class SyntheticBatches final : public StagedBatches {
 public:
  SyntheticBatches(Device& device, TorchGenerator generator, const LinearShape& shape, std::int64_t rows,
                   std::int64_t steps, int ranks)
      : StagedBatches(device, rows, shape.in, shape.out),
        generator_(std::move(generator)),
        shape_(shape),
        rows_(rows),
        steps_(steps),
        global_rows_(checked_product(rows, std::int64_t{ranks}, "the rows of a step, of all ranks")),
        epoch_rows_(checked_product(steps, global_rows_, "the rows of all steps")) {}

  std::int64_t steps_per_epoch() const override { return steps_; }
  std::int64_t rows_per_epoch() const override { return epoch_rows_; }
  bool one_step_over_all_rows() const override { return false; }

 private:
  Rows fill(std::int64_t, std::int64_t, float* x, float* target) override {
    generator_.randn({x, static_cast<std::size_t>(rows_ * shape_.in)});
    generator_.randn({target, static_cast<std::size_t>(rows_ * shape_.out)});
    return {rows_, global_rows_};
  }

  TorchGenerator generator_;
  LinearShape shape_;
  std::int64_t rows_, steps_, global_rows_, epoch_rows_;
};

}  // namespace

std::unique_ptr<BatchSource> make_dataset_batches(Device& device, const Dataset& data, const SamplerOptions& sampler) {
  SamplerOptions options = sampler;
  options.rows = data.rows;
  DistributedSampler first_epoch(options);
  if (first_epoch.steps() == 0) {
    throw UseError(
        fmt::format("an epoch has no step: {} rows are fewer than {}, and the rest is dropped; use a smaller "
                    "batch, or leave out --drop-last",
                    options.rows,
                    options.repeat ? fmt::format("the {} ranks", options.ranks)
                                   : fmt::format("a step's {}", options.global_batch)));
  }
  if (first_epoch.steps() == 1 && options.global_batch >= data.rows && !options.repeat) {
    return std::make_unique<AllRows>(device, data, first_epoch);
  }
  return std::make_unique<DatasetBatches>(device, data, std::move(first_epoch));
}

std::unique_ptr<BatchSource> make_synthetic_batches(Device& device, TorchGenerator generator, const LinearShape& shape,
                                                    std::int64_t rows, std::int64_t steps, int ranks) {
  return std::make_unique<SyntheticBatches>(device, std::move(generator), shape, rows, steps, ranks);
}

}  // namespace ddp
