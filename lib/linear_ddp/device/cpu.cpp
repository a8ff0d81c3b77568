#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/device/device.hpp>
#include "linear_ddp/device/cpu_loss.hpp"
#include "linear_ddp/device/cpu_passes.hpp"
#include "linear_ddp/device/cpu_tiny.hpp"
#include "linear_ddp/device/cpu_update.hpp"
#include "linear_ddp/device/gemm.hpp"

namespace ddp {
namespace {

/// Rows of one tile. Where the weights fit in the second-level cache a tile's outputs do too, from the forward product
/// to the gradient product. Larger weights would be read and written anew for each tile: few tiles, of 16 MiB of
/// outputs.
std::int64_t rows_of_a_tile(std::int64_t in, std::int64_t out) {
  constexpr std::int64_t cached_numel = 64 * 1024, bounded_numel = 4 * 1024 * 1024;
  return std::max(std::int64_t{64}, (in * out <= cached_numel ? cached_numel : bounded_numel) / out);
}

/// Rows whose products are added up in floats. The sums of more are added up in float64: a float that has grown rounds
/// each of many small addends the same way.
constexpr std::int64_t rows_of_a_float_sum = 64 * 1024;

/// One of an operation's gradients, in float64.
class GradientSum {
 public:
  void start(std::int64_t numel) {
    if (std::cmp_less(sums_.size(), numel)) sums_.resize(static_cast<std::size_t>(numel));
    std::fill_n(sums_.data(), numel, 0.0);
  }
  double* data() { return sums_.data(); }
  void finish(std::int64_t numel, bool add, float* gradient) const {
    for (std::int64_t i = 0; i < numel; ++i) {
      gradient[i] = static_cast<float>(sums_[static_cast<std::size_t>(i)]) + (add ? gradient[i] : 0.0F);
    }
  }

 private:
  std::vector<double> sums_;  // only grows
};

/// Nothing is saved by recording where operations run as they are called.
class CpuRecording final : public Recording {
 public:
  explicit CpuRecording(std::function<void()> work) : work_(std::move(work)) {}
  void replay() override { work_(); }

 private:
  std::function<void()> work_;
};

class CpuStagingBuffer final : public StagingBuffer {
 public:
  CpuStagingBuffer(Device& device, std::size_t bytes)
      : memory_(device, narrow<std::int64_t>(bytes, "the bytes of a staging buffer")) {}
  void* host() override { return memory_.data(); }
  void send() override {}
  const void* device() const noexcept override { return memory_.data(); }

 private:
  Buffer<std::byte> memory_;
};

class CpuDevice final : public Device {
 public:
  CpuDevice() { gemm::use_calling_thread_only(); }

  std::string_view kind() const noexcept override { return "cpu"; }
  std::string description() const override { return fmt::format("CPU, {}", gemm::library()); }
  bool memory_is_host() const noexcept override { return true; }

  void* allocate(std::size_t bytes, MemoryUse use) override {
    constexpr std::size_t cache_line = 64, huge_page = std::size_t{2} << 20;
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t alignment = bytes >= 2 * huge_page            ? huge_page
                                  : use == MemoryUse::communication ? page
                                                                    : cache_line;
    const std::size_t size = round_up(std::max(bytes, std::size_t{1}), alignment);
    void* memory = std::aligned_alloc(alignment, size);
    if (memory == nullptr) {
      throw Error(Status::failed, fmt::format("could not allocate {} MiB of memory; use more ranks on more hosts, or a "
                                              "smaller --batch-size",
                                              bytes >> 20));
    }
    // A hint: an all-reduce of 25 MB was seen to take half the time in huge pages. Without them all works the same.
    if (alignment == huge_page) madvise(memory, size, MADV_HUGEPAGE);
    return std::memset(memory, 0, size);
  }
  void release(void* memory) noexcept override { std::free(memory); }

  void upload(void* target, const void* source, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(target, source, bytes);
  }
  void download(void* target, const void* source, std::size_t bytes) override { upload(target, source, bytes); }

  std::unique_ptr<StagingBuffer> make_staging_buffer(std::size_t bytes) override {
    return std::make_unique<CpuStagingBuffer>(*this, bytes);
  }

  // Everything has run when its call returns.
  void wait(Queue, Queue) override {}
  void synchronize() override {}
  void watch_waits(Watchdog*) noexcept override {}
  void* native(Queue) noexcept override { return nullptr; }

  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    return std::make_unique<CpuRecording>(work);
  }

  void linear_forward(const LinearForward& op) override {
    if (op.rows > 0) forward(op.rows, op.in, op.out, op.x, op.weight, op.bias, op.y);
  }

  void linear_loss(const LinearLoss& op) override {
    const bool gradients = op.weight_gradient != nullptr;
    loss_sum_.assign(static_cast<std::size_t>(op.heads), 0.0);
    if (gradients && tiny::serves(op))
      loss_sum_[0] = tiny::mse_step(op);
    else
      tiled_loss(op, gradients);
    for (std::size_t head = 0; head < loss_sum_.size(); ++head) {
      if (op.loss != nullptr) {
        op.loss[head] =
            (op.add ? op.loss[head] : 0.0F) + static_cast<float>(static_cast<double>(op.loss_scale) * loss_sum_[head]);
      }
      if (op.loss_sum != nullptr) op.loss_sum[head] = (op.add ? op.loss_sum[head] : 0.0) + loss_sum_[head];
    }
  }

  void square_sum(const Gradient& gradient, double* sum, bool add) override {
    *sum = (add ? *sum : 0.0) + passes::square_sum(gradient);
  }

  void sgd_update(const Gradient& gradient, const SgdUpdate& op, const float* lr) override {
    passes::sgd(gradient, {*lr, op.momentum, op.dampening, op.weight_decay, op.nesterov, op.first}, op.momentum_buffer);
  }

  void adam_update(const Gradient& gradient, const AdamUpdate& op, const float* scalars) override {
    passes::adam(gradient, op, scalars);
  }

  void accumulate(const float* values, std::int64_t numel, double factor, double* sums) override {
    for (std::int64_t i = 0; i < numel; ++i) sums[i] += factor * static_cast<double>(values[i]);
  }

  void widen(const float* values, std::int64_t numel, double* result) override { std::copy_n(values, numel, result); }

 private:
  /// The bias goes in first and the product on top of it: no pass of its own over the outputs.
  static void forward(std::int64_t rows, std::int64_t in, std::int64_t out, const float* x, const float* weight,
                      const float* bias, float* y) {
    if (bias != nullptr) passes::fill_rows(rows, out, bias, y);
    gemm::product_nt(rows, out, in, x, weight, bias != nullptr ? 1.0F : 0.0F, y);
  }

  /// In tiles of rows, so that the outputs in memory are bounded, however many rows there are.
  void tiled_loss(const LinearLoss& op, bool gradients) {
    const std::int64_t out = op.heads * op.out, weights = op.in * out;  // of all heads
    const std::int64_t tile = rows_of_a_tile(op.in, out);
    const std::int64_t group = tile * std::max(std::int64_t{1}, rows_of_a_float_sum / tile);
    const bool in_groups = gradients && op.rows > group, sums_bias = gradients && op.bias_gradient != nullptr;
    float* y = at_least(outputs_, std::min(tile, op.rows) * out);
    float* weight_gradient = in_groups ? at_least(group_gradient_, weights) : op.weight_gradient;
    if (sums_bias) bias_sum_.start(out);
    if (in_groups) weight_sum_.start(weights);
    if (gradients && op.rows == 0 && !op.add) std::fill_n(op.weight_gradient, weights, 0.0F);

    for (std::int64_t row = 0; row < op.rows; row += tile) {
      const std::int64_t rows = std::min(tile, op.rows - row);
      const float* x = op.x + row * op.in;
      forward(rows, op.in, out, x, op.weight, op.bias, y);
      passes::loss(op, row, rows, y, loss_sum_.data());
      if (!gradients) continue;
      if (sums_bias) passes::add_columns(rows, out, y, bias_sum_.data());
      const bool overwrites = row % group == 0 && (in_groups || !op.add);
      gemm::product_tn(out, op.in, rows, y, x, overwrites ? 0.0F : 1.0F, weight_gradient);
      const bool ends_group = (row + rows) % group == 0 || row + rows == op.rows;
      if (in_groups && ends_group) passes::add_columns(1, weights, weight_gradient, weight_sum_.data());
    }
    if (sums_bias) bias_sum_.finish(out, op.add, op.bias_gradient);
    if (in_groups) weight_sum_.finish(weights, op.add, op.weight_gradient);
  }

  /// A vector only grows: to resize it for each batch would fill it with zeros again and again.
  template <class T>
  static T* at_least(std::vector<T>& values, std::int64_t numel) {
    if (std::cmp_less(values.size(), numel)) values.resize(static_cast<std::size_t>(numel));
    return values.data();
  }

  std::vector<float> outputs_;         // of one tile, at most
  std::vector<float> group_gradient_;  // of one group of tiles
  GradientSum bias_sum_, weight_sum_;
  std::vector<double> loss_sum_;  // of each head
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace ddp
