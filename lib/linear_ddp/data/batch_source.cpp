#include <linear_ddp/data/batch_source.hpp>

#include <algorithm>
#include <utility>

namespace ddp {
namespace {

/// Device memory for one step, filled on the host and sent over; where the host may write it, filled in place.
class StepMemory {
 public:
  StepMemory(Device& device, std::int64_t rows, std::int64_t in, std::int64_t out)
      : device_(device), x_(device, rows * in), y_(device, rows * out) {
    if (device.memory_is_host()) return;
    host_x_.resize(static_cast<std::size_t>(x_.numel()));
    host_y_.resize(static_cast<std::size_t>(y_.numel()));
  }

  [[nodiscard]] float* x() noexcept { return host_x_.empty() ? x_.data() : host_x_.data(); }
  [[nodiscard]] float* y() noexcept { return host_y_.empty() ? y_.data() : host_y_.data(); }

  [[nodiscard]] Batch send(std::int64_t rows, std::int64_t in, std::int64_t out) {
    if (!device_.memory_is_host()) {
      x_.upload({host_x_.data(), static_cast<std::size_t>(rows * in)});
      y_.upload({host_y_.data(), static_cast<std::size_t>(rows * out)});
    }
    return {rows, x_.data(), y_.data()};
  }

 private:
  Device& device_;
  Buffer<float> x_, y_;
  std::vector<float> host_x_, host_y_;
};

class DatasetBatches final : public BatchSource {
 public:
  DatasetBatches(Device& device, const Dataset& data, const SamplerOptions& options)
      : data_(data),
        sampler_(options),
        all_rows_(sampler_.steps() == 1 && options.global_batch >= data.rows && !options.repeat),
        memory_(device, rows_of_a_step(options), data.in, data.out) {}

  std::int64_t steps_per_epoch() const override { return sampler_.steps(); }
  bool one_step_over_all_rows() const override { return all_rows_; }
  std::int64_t rows_per_epoch() const override {
    std::int64_t rows = 0;
    for (std::int64_t step = 0; step < sampler_.steps(); ++step) rows += sampler_.global_rows(step);
    return rows;
  }

  Step load(std::int64_t epoch, std::int64_t step) override {
    // The order of the rows does not change a sum over all of them.
    if (all_rows_ && resident_.global_rows > 0) return resident_;
    if (step == 0) sampler_.set_epoch(epoch);
    const auto rows = sampler_.rows_of_step(step);
    float* x = memory_.x();
    float* y = memory_.y();
    for (const std::int64_t row : rows) {
      x = std::copy_n(data_.x.data() + row * data_.in, data_.in, x);
      y = std::copy_n(data_.y.data() + row * data_.out, data_.out, y);
    }
    resident_ = {memory_.send(static_cast<std::int64_t>(rows.size()), data_.in, data_.out), sampler_.global_rows(step)};
    return resident_;
  }

 private:
  static std::int64_t rows_of_a_step(const SamplerOptions& options) {
    return (std::min(options.global_batch, std::max(options.rows, std::int64_t{options.ranks})) + options.ranks - 1) /
           options.ranks;
  }

  const Dataset& data_;
  DistributedSampler sampler_;
  bool all_rows_;
  StepMemory memory_;
  Step resident_;
};

class SyntheticBatches final : public BatchSource {
 public:
  SyntheticBatches(Device& device, TorchGenerator generator, const LinearShape& shape, std::int64_t rows,
                   std::int64_t steps, int ranks)
      : generator_(std::move(generator)),
        shape_(shape),
        rows_(rows),
        steps_(steps),
        ranks_(ranks),
        memory_(device, rows, shape.in, shape.out) {}

  std::int64_t steps_per_epoch() const override { return steps_; }
  std::int64_t rows_per_epoch() const override { return steps_ * rows_ * ranks_; }
  bool one_step_over_all_rows() const override { return false; }

  Step load(std::int64_t, std::int64_t) override {
    generator_.randn({memory_.x(), static_cast<std::size_t>(rows_ * shape_.in)});
    generator_.randn({memory_.y(), static_cast<std::size_t>(rows_ * shape_.out)});
    return {memory_.send(rows_, shape_.in, shape_.out), rows_ * ranks_};
  }

 private:
  TorchGenerator generator_;
  LinearShape shape_;
  std::int64_t rows_, steps_, ranks_;
  StepMemory memory_;
};

}  // namespace

std::unique_ptr<BatchSource> make_dataset_batches(Device& device, const Dataset& data, const SamplerOptions& sampler) {
  return std::make_unique<DatasetBatches>(device, data, sampler);
}

std::unique_ptr<BatchSource> make_synthetic_batches(Device& device, TorchGenerator generator, const LinearShape& shape,
                                                    std::int64_t rows, std::int64_t steps, int ranks) {
  return std::make_unique<SyntheticBatches>(device, std::move(generator), shape, rows, steps, ranks);
}

}  // namespace ddp
