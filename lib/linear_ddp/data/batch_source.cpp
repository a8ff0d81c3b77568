#include <linear_ddp/data/batch_source.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/data/feature_source.hpp>
#include <linear_ddp/data/row_weights.hpp>
#include <linear_ddp/data/upload_rows.hpp>

namespace ddp {
namespace {

/// Batches that are made on the host, each anew. While the device works on one, the next is made and sent to a second
/// buffer; where host and device are one, there is nothing to gain, and one buffer. What is read from files is made in
/// a thread of its own, while the device works on the batch before.
class StagedBatches : public BatchSource {
 public:
  Step load(std::int64_t epoch, std::int64_t batch) final {
    if (ahead_.valid()) {
      made_ = ahead_.get();
      buffers_[current_]->send();
    } else if (!prepared_) {
      make(epoch, batch);
    }
    prepared_ = false;
    device_.wait(Queue::compute, Queue::copy);
    // The next copy overwrites what the batch before this one has read.
    device_.wait(Queue::copy, Queue::compute);
    const auto* x = static_cast<const float*>(buffers_[current_]->device());
    made_.batch = {made_.batch.rows, x, x + target_offset_, weighted_ ? x + weight_offset_ : nullptr};
    return made_;
  }

  void read_ahead(std::int64_t epoch, std::int64_t batch) final {
    if (!reads_files_) return;
    const Places places = next_places();
    ahead_ = std::async(std::launch::async, [this, epoch, batch, places] { return fill(epoch, batch, places); });
  }

  void prepare(std::int64_t epoch, std::int64_t batch) final {
    if (buffers_.size() > 1 && !reads_files_) make(epoch, batch);
  }

 protected:
  /// Where a batch is made: x [rows, in], the targets [rows, columns], and, when there are weights, [rows] of them.
  struct Places {
    float *x, *target, *weight;
  };

  /// For at most so many rows of this rank in a batch.
  StagedBatches(Device& device, std::int64_t rows, std::int64_t in, std::int64_t target_columns, bool weighted,
                bool reads_files)
      : device_(device), weighted_(weighted), reads_files_(reads_files) {
    const std::int64_t target_numel = numel(rows, target_columns), weight_numel = weighted ? rows : 0;
    target_offset_ = aligned(numel(rows, in));
    // No sum of two int64_t is beyond size_t; its bytes may be, and so many values are then no int64_t.
    const auto bytes_of = [](std::int64_t first, std::int64_t second) {
      return checked_product(static_cast<std::size_t>(first) + static_cast<std::size_t>(second), sizeof(float),
                             "the bytes of a batch");
    };
    (void)bytes_of(target_offset_, target_numel);
    weight_offset_ = aligned(target_offset_ + target_numel);
    const std::size_t bytes = bytes_of(weight_offset_, weight_numel);
    const int buffers = device.memory_is_host() && !reads_files ? 1 : 2;
    for (int i = 0; i < buffers; ++i) buffers_.push_back(device.make_staging_buffer(bytes));
  }

  /// To be called by the destructor of what fill() needs.
  void finish_reading() noexcept {
    if (ahead_.valid()) ahead_.wait();
  }

  /// Makes a batch; of the result, the pointers are not looked at.
  virtual Step fill(std::int64_t epoch, std::int64_t batch, const Places& places) = 0;

 private:
  static std::int64_t numel(std::int64_t rows, std::int64_t columns) {
    return checked_product(rows, columns, "the values of a batch, rows times columns");
  }
  static std::int64_t aligned(std::int64_t offset) { return round_up(offset, std::int64_t{64 / sizeof(float)}); }

  Places next_places() {
    current_ = (current_ + 1) % buffers_.size();
    auto* x = static_cast<float*>(buffers_[current_]->host());
    return {x, x + target_offset_, x + weight_offset_};
  }

  void make(std::int64_t epoch, std::int64_t batch) {
    made_ = fill(epoch, batch, next_places());
    buffers_[current_]->send();
    prepared_ = true;
  }

  Device& device_;
  bool weighted_, reads_files_;
  std::int64_t target_offset_ = 0, weight_offset_ = 0;
  std::vector<std::unique_ptr<StagingBuffer>> buffers_;
  std::size_t current_ = 0;
  Step made_;
  bool prepared_ = false;
  std::future<Step> ahead_;
};

class DatasetBatches final : public StagedBatches {
 public:
  DatasetBatches(Device& device, const Dataset& data, const BatchOptions& options, RowWeights weights,
                 DistributedSampler sampler)
      : StagedBatches(device, sampler.most_rows_of_step(), data.in, data.out, weights.uneven(),
                      data.source && !data.source->in_memory()),
        data_(data),
        accumulate_(options.accumulate),
        weights_(std::move(weights)),
        sampler_(std::move(sampler)) {}

  ~DatasetBatches() override { finish_reading(); }

  std::int64_t batches_per_epoch() const override { return sampler_.steps(); }
  std::int64_t accumulate() const override { return accumulate_; }
  bool one_step_over_all_rows() const override { return false; }
  std::int64_t rows_per_epoch() const override { return sampler_.rows_per_epoch(); }
  void start_at(std::int64_t epoch, std::int64_t) override { sampler_.set_epoch(epoch); }

 private:
  Step fill(std::int64_t epoch, std::int64_t batch, const Places& places) override {
    if (batch == 0) sampler_.set_epoch(epoch);
    const auto rows = sampler_.rows_of_step(batch);
    data_.copy_x(rows, places.x);
    data_.copy_y(rows, places.target);

    const Update update = update_of(batch, sampler_.steps(), accumulate_);
    Step step{.batch = {}, .part = update.part(batch), .global_rows = sampler_.global_rows(batch)};
    step.batch.rows = static_cast<std::int64_t>(rows.size());
    for (std::int64_t other = update.first; other < update.end; ++other) {
      step.update_rows += sampler_.global_rows(other);
      step.weight += sampler_.global_weight(other);
    }
    step.divisor = weights_.divisor(rows, update, step.weight);
    if (weights_.uneven()) weights_.write(rows, std::exchange(step.divisor, 1.0), places.weight);
    return step;
  }

  const Dataset& data_;
  std::int64_t accumulate_;
  RowWeights weights_;
  DistributedSampler sampler_;
};

/// The order of the rows does not change a sum over all of them: the first epoch's stays on the device.
class AllRows final : public BatchSource {
 public:
  AllRows(Device& device, const Dataset& data, const BatchOptions& options, const RowWeights& weights,
          const DistributedSampler& sampler)
      : averages_rows_(options.averaging == Averaging::rows) {
    const auto rows = sampler.rows_of_step(0);
    x_ = upload_rows(device, rows, data.in, [&](auto some, float* to) { data.copy_x(some, to); });
    target_ = upload_rows(device, rows, data.out, [&](auto some, float* to) { data.copy_y(some, to); });
    step_.global_rows = step_.update_rows = data.rows;
    step_.weight = sampler.global_weight(0);
    step_.divisor = weights.divisor(rows, {0, 1}, step_.weight);
    if (weights.uneven()) {
      weight_ = upload_rows(device, rows, 1, [&, divisor = std::exchange(step_.divisor, 1.0)](auto some, float* to) {
        weights.write(some, divisor, to);
      });
    }
    step_.batch = {static_cast<std::int64_t>(rows.size()), x_.data(), target_.data(), weight_.data()};
  }

  std::int64_t batches_per_epoch() const override { return 1; }
  std::int64_t accumulate() const override { return 1; }
  std::int64_t rows_per_epoch() const override { return step_.global_rows; }
  bool one_step_over_all_rows() const override { return averages_rows_; }
  void start_at(std::int64_t, std::int64_t) override {}
  Step load(std::int64_t, std::int64_t) override { return step_; }
  void read_ahead(std::int64_t, std::int64_t) override {}
  void prepare(std::int64_t, std::int64_t) override {}

 private:
  bool averages_rows_;
  Buffer<float> x_, target_, weight_;
  Step step_;
};

class SyntheticBatches final : public StagedBatches {
 public:
  SyntheticBatches(Device& device, TorchGenerator generator, const LinearShape& shape, std::int64_t rows,
                   std::int64_t batches, std::int64_t accumulate, int ranks)
      : StagedBatches(device, rows, shape.in, shape.out, false, false),
        generator_(std::move(generator)),
        shape_(shape),
        rows_(rows),
        batches_(batches),
        accumulate_(accumulate),
        global_rows_(checked_product(rows, std::int64_t{ranks}, "the rows of a step, of all ranks")),
        epoch_rows_(checked_product(batches, global_rows_, "the rows of all steps")) {}

  std::int64_t batches_per_epoch() const override { return batches_; }
  std::int64_t accumulate() const override { return accumulate_; }
  std::int64_t rows_per_epoch() const override { return epoch_rows_; }
  bool one_step_over_all_rows() const override { return false; }
  void start_at(std::int64_t epoch, std::int64_t batch) override {
    std::vector<float> x(static_cast<std::size_t>(rows_ * shape_.in)), y(static_cast<std::size_t>(rows_ * shape_.out));
    for (std::int64_t before = epoch * batches_ + batch; before > 0; --before) draw(x.data(), y.data());
  }

 private:
  void draw(float* x, float* target) {
    generator_.randn({x, static_cast<std::size_t>(rows_ * shape_.in)});
    generator_.randn({target, static_cast<std::size_t>(rows_ * shape_.out)});
  }

  Step fill(std::int64_t, std::int64_t batch, const Places& places) override {
    draw(places.x, places.target);
    const Update update = update_of(batch, batches_, accumulate_);
    Step step{.batch = {}, .part = update.part(batch), .global_rows = global_rows_};
    step.batch.rows = rows_;
    step.update_rows = global_rows_ * update.batches();
    step.divisor = step.weight = static_cast<double>(step.update_rows);
    return step;
  }

  TorchGenerator generator_;
  LinearShape shape_;
  std::int64_t rows_, batches_, accumulate_, global_rows_, epoch_rows_;
};

}  // namespace

std::unique_ptr<BatchSource> make_dataset_batches(Device& device, const Dataset& data, const BatchOptions& options) {
  const RowWeights weights(data, options);
  SamplerOptions of_data = options.sampler;
  of_data.rows = data.rows;
  if (weights.uneven()) of_data.weight = [weights](std::int64_t row) { return weights.of(row); };
  DistributedSampler first_epoch(of_data);
  if (first_epoch.steps() == 0) {
    throw UseError(
        fmt::format("an epoch has no step: {} rows are fewer than {}, and the rest is dropped; use a smaller "
                    "batch, or leave out --drop-last",
                    of_data.rows,
                    of_data.repeat ? fmt::format("the {} ranks", of_data.ranks)
                                   : fmt::format("a step's {}", of_data.global_batch)));
  }
  if (first_epoch.steps() == 1 && of_data.global_batch >= data.rows && !of_data.repeat) {
    return std::make_unique<AllRows>(device, data, options, weights, first_epoch);
  }
  return std::make_unique<DatasetBatches>(device, data, options, weights, std::move(first_epoch));
}

std::unique_ptr<BatchSource> make_synthetic_batches(Device& device, TorchGenerator generator, const LinearShape& shape,
                                                    std::int64_t rows, std::int64_t batches, std::int64_t accumulate,
                                                    int ranks) {
  return std::make_unique<SyntheticBatches>(device, std::move(generator), shape, rows, batches, accumulate, ranks);
}

}  // namespace ddp
