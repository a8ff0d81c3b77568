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
#include "linear_ddp/device/cpu_gradients.hpp"
#include "linear_ddp/device/cpu_loss.hpp"
#include "linear_ddp/device/cpu_passes.hpp"
#include "linear_ddp/device/cpu_skinny.hpp"
#include "linear_ddp/device/cpu_tiny.hpp"
#include "linear_ddp/device/cpu_update.hpp"
#include "linear_ddp/device/gemm.hpp"

namespace ddp {
namespace {

/// Rows of one tile. Where the weights fit in the second-level cache a tile's outputs do too, from the forward product
/// to the gradient product. Larger weights would be read and written anew for each tile: few tiles, of 16 MiB of
/// outputs.
std::int64_t rows_of_a_tile(std::int64_t in, std::int64_t out) {
  if (skinny::serves(in, out)) return skinny::rows_of_a_tile(in);
  constexpr std::int64_t cached_numel = 64 * 1024, bounded_numel = 4 * 1024 * 1024;
  return std::max(std::int64_t{64}, (in * out <= cached_numel ? cached_numel : bounded_numel) / out);
}

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
  void copy(void* target, const void* source, std::size_t bytes) override { upload(target, source, bytes); }

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

  void ignore_alignment() override {}

  void linear_forward(const LinearForward& op) override {
    const std::int64_t tile = op.activation == Activation::none ? op.rows : rows_of_a_tile(op.in, op.out);
    for (std::int64_t row = 0; row < op.rows; row += tile) {
      const std::int64_t rows = std::min(tile, op.rows - row);
      float* y = op.y + row * op.out;
      float* z = op.z == nullptr ? y : op.z + row * op.out;
      forward(rows, op.in, op.out, op.x + row * op.in, op.weight, op.bias, z);
      passes::activate(op.activation, rows * op.out, z, y);
    }
  }

  void linear_backward(const LinearBackward& op) override {
    const std::int64_t tile = rows_of_a_tile(op.in, op.out);
    const bool gradients = op.weight_gradient != nullptr;
    if (gradients) gradients_.start({op.rows, op.in, op.out, tile, op.add, op.weight_gradient, op.bias_gradient});
    for (std::int64_t row = 0; row < op.rows; row += tile) {
      const std::int64_t rows = std::min(tile, op.rows - row);
      const float* dy = op.dy + row * op.out;
      if (gradients) gradients_.add(rows, op.x + row * op.in, dy);
      input_gradient(row, rows, op.in, op.out, dy, op.weight, op.input);
    }
    if (gradients) gradients_.finish();
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

  void linear_products(const LinearProducts& op) override {
    gemm::product_nt(op.rows, op.out, op.in, op.x, op.weight, 0, op.y);
    gemm::product_tn(op.out, op.in, op.rows, op.y, op.x, 0, op.weight_gradient);
    if (op.dx != nullptr) gemm::product_nn(op.rows, op.in, op.out, op.y, op.weight, 0, op.dx);
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

  void add(const float* values, std::int64_t numel, float factor, float* sums, bool overwrite) override {
    overwrite ? passes::scale(values, numel, factor, sums) : passes::add(values, numel, factor, sums);
  }
  void orthonormalize(std::int64_t rows, std::int64_t columns, float* values) override {
    passes::orthonormalize(rows, columns, values);
  }
  void to_half(HalfType type, const float* values, std::int64_t numel, std::uint16_t* result) override {
    passes::to_half(type, values, numel, result);
  }
  void from_half(HalfType type, const std::uint16_t* values, std::int64_t numel, float* result) override {
    passes::from_half(type, values, numel, result);
  }

 private:
  /// The bias goes in first and the product on top of it: no pass of its own over the outputs.
  static void forward(std::int64_t rows, std::int64_t in, std::int64_t out, const float* x, const float* weight,
                      const float* bias, float* y) {
    if (skinny::serves(in, out)) return skinny::forward(rows, in, out, x, weight, bias, y);
    if (bias != nullptr) passes::fill_rows(rows, out, bias, y);
    gemm::product_nt(rows, out, in, x, weight, bias != nullptr ? 1.0F : 0.0F, y);
  }

  static void input_gradient(std::int64_t first, std::int64_t rows, std::int64_t in, std::int64_t out, const float* dy,
                             const float* weight, const InputGradient& input) {
    if (input.dz == nullptr) return;
    float* dz = input.dz + first * in;
    gemm::product_nn(rows, in, out, dy, weight, 0, dz);
    passes::through_activation(input.activation, rows * in, input.kept + first * in, dz);
  }

  /// In tiles of rows, so that the outputs in memory are bounded, however many rows there are.
  void tiled_loss(const LinearLoss& op, bool gradients) {
    const std::int64_t out = op.heads * op.out;  // of all heads
    const std::int64_t tile = rows_of_a_tile(op.in, out);
    float* y = passes::at_least(outputs_, std::min(tile, op.rows) * out);
    if (gradients) gradients_.start({op.rows, op.in, out, tile, op.add, op.weight_gradient, op.bias_gradient});
    for (std::int64_t row = 0; row < op.rows; row += tile) {
      const std::int64_t rows = std::min(tile, op.rows - row);
      const float* x = op.x + row * op.in;
      forward(rows, op.in, out, x, op.weight, op.bias, y);
      passes::loss(op, row, rows, y, loss_sum_.data());
      if (!gradients) continue;
      gradients_.add(rows, x, y);
      input_gradient(row, rows, op.in, out, y, op.weight, op.input);
    }
    if (gradients) gradients_.finish();
  }

  std::vector<float> outputs_;  // of one tile, at most
  passes::ParameterGradients gradients_;
  std::vector<double> loss_sum_;  // of each head
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace ddp
