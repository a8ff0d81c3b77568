#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/device/device.hpp>
#include "kernels/sgd.hpp"
#include "linear_ddp/device/gemm.hpp"
#include "linear_ddp/device/loss_pass.hpp"

namespace ddp {
namespace {

/// Outputs of one tile, in floats: they stay in the second-level cache from the forward product to the gradient
/// product.
constexpr std::int64_t tile_numel = 64 * 1024;

class CpuDevice final : public Device {
 public:
  CpuDevice() { gemm::use_calling_thread_only(); }

  std::string_view kind() const noexcept override { return "cpu"; }
  std::string description() const override { return fmt::format("CPU, {}", gemm::library()); }
  bool memory_is_host() const noexcept override { return true; }

  void* allocate(std::size_t bytes) override {
    constexpr std::size_t cache_line = 64, huge_page = std::size_t{2} << 20;
    const std::size_t alignment = bytes < 2 * huge_page ? cache_line : huge_page;
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

  // Everything has run when its call returns.
  void wait(Queue, Queue) override {}
  void synchronize() override {}
  void watch_waits(Watchdog*) noexcept override {}
  void* native(Queue) noexcept override { return nullptr; }

  void linear_forward(const LinearForward& op) override {
    if (op.rows == 0) return;
    gemm::product_nt(op.rows, op.out, op.in, op.x, op.weight, op.y);
    if (op.bias == nullptr) return;
    for (std::int64_t row = 0; row < op.rows; ++row) {
      float* y = op.y + row * op.out;
      for (std::int64_t j = 0; j < op.out; ++j) y[j] += op.bias[j];
    }
  }

  /// In tiles of rows, so that no more than a tile of outputs is ever in memory, however many rows there are.
  void linear_loss(const LinearLoss& op) override {
    const bool gradients = op.weight_gradient != nullptr;
    const std::int64_t tile = std::clamp(tile_numel / op.out, std::int64_t{64}, std::int64_t{4096});
    outputs_.resize(static_cast<std::size_t>(std::min(tile, op.rows) * op.out));
    if (gradients && op.bias_gradient != nullptr) std::fill_n(op.bias_gradient, op.out, 0.0F);
    if (gradients && op.rows == 0) std::fill_n(op.weight_gradient, op.out * op.in, 0.0F);

    double sum = 0;
    for (std::int64_t row = 0; row < op.rows; row += tile) {
      const std::int64_t rows = std::min(tile, op.rows - row);
      const float* x = op.x + row * op.in;
      gemm::product_nt(rows, op.out, op.in, x, op.weight, outputs_.data());
      sum += mse_pass(rows, op.out, op.bias, op.target + row * op.out, op.loss_scale, outputs_.data(),
                      gradients ? op.bias_gradient : nullptr);
      if (gradients) {
        gemm::product_tn(op.out, op.in, rows, outputs_.data(), x, row == 0 ? 0.0F : 1.0F, op.weight_gradient);
      }
    }
    if (op.loss != nullptr) *op.loss = static_cast<float>(static_cast<double>(op.loss_scale) * sum);
    if (op.loss_sum != nullptr) *op.loss_sum = sum;
  }

  void sgd_update(const SgdUpdate& op) override {
    const kernels::SgdStep<float> step{op.lr, op.momentum, op.dampening, op.weight_decay, op.nesterov, op.first};
    if (op.momentum_buffer == nullptr) {
      for (std::int64_t i = 0; i < op.numel; ++i) {
        op.parameters[i] = step.without_momentum(op.parameters[i], op.gradients[i]);
      }
    } else {
      for (std::int64_t i = 0; i < op.numel; ++i) {
        op.parameters[i] = step.with_momentum(op.parameters[i], op.gradients[i], op.momentum_buffer[i]);
      }
    }
  }

  void accumulate(const float* value, double factor, double* sum) override {
    *sum += factor * static_cast<double>(*value);
  }

 private:
  std::vector<float> outputs_;  // one tile; grows once, then never
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace ddp
