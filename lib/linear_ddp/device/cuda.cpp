#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include <linear_ddp/device/cuda_check.hpp>
#include <linear_ddp/device/cuda_graph.hpp>
#include <linear_ddp/device/cuda_handle.hpp>
#include <linear_ddp/device/cuda_matmul.hpp>
#include <linear_ddp/device/cuda_passes.hpp>
#include <linear_ddp/device/cuda_staging_buffer.hpp>
#include <linear_ddp/device/cuda_upload.hpp>
#include <linear_ddp/device/device.hpp>
#include <linear_ddp/launch/watchdog.hpp>
#include "kernels/accumulate.hpp"
#include "kernels/loss_kernel.hpp"
#include "kernels/orthonormal.hpp"
#include "kernels/update_kernel.hpp"

namespace ddp {
namespace {

CudaStream make_stream(int priority) {
  cudaStream_t raw = nullptr;
  // Non-blocking: nothing here uses the legacy stream, and a library that does must not order our queues.
  check(cudaStreamCreateWithPriority(&raw, cudaStreamNonBlocking, priority), "make a CUDA stream");
  return CudaStream(raw);
}

/// A queue, and the event by which others wait for it.
struct Lane {
  CudaStream stream;
  CudaEvent done;
};

Lane make_lane(int priority) {
  return {make_stream(priority), make_cuda_event()};
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal)
      : ordinal_(bind(ordinal)),
        lanes_{make_lane(0), make_lane(highest_priority()), make_lane(0)},
        compute_(stream(Queue::compute)),
        upload_(compute_),
        matmul_(compute_),
        partials_(cuda_memory(std::max(kernels::max_loss_partials, kernels::max_square_partials) * sizeof(double))) {}

  [[nodiscard]] std::string_view kind() const noexcept override { return "cuda"; }

  [[nodiscard]] std::string description() const override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal_), "ask for the GPU's name");
    return fmt::format("{}, {} GiB", properties.name, properties.totalGlobalMem >> 30U);
  }

  [[nodiscard]] bool memory_is_host() const noexcept override { return false; }

  [[nodiscard]] void* allocate(std::size_t bytes, MemoryUse use) override {
    const Watchdog::Watch watch(*watchdog_, "allocation of GPU memory", bytes);
    NcclMemory shared = use == MemoryUse::communication && bytes > 0 ? nccl_memory(bytes) : nullptr;
    CudaMemory own = shared ? nullptr : cuda_memory(bytes);
    void* memory = shared ? shared.get() : own.get();
    if (bytes > 0) check(cudaMemsetAsync(memory, 0, bytes, compute_), "clear GPU memory");
    if (shared) nccl_memory_.emplace(memory, std::move(shared));
    (void)own.release();
    return memory;
  }

  void release(void* memory) noexcept override {
    const Watchdog::Watch watch(*watchdog_, "release of GPU memory", 0);  // cudaFree waits for the GPU
    if (nccl_memory_.erase(memory) == 0) CudaMemory{memory};
  }

  [[nodiscard]] std::unique_ptr<StagingBuffer> make_staging_buffer(std::size_t bytes) override {
    const Watchdog::Watch watch(*watchdog_, "allocation of pinned and GPU memory", bytes);
    return std::make_unique<CudaStagingBuffer>(stream(Queue::copy), bytes, watchdog_);
  }

  void upload(void* target, const void* source, std::size_t bytes) override {
    const Watchdog::Watch watch(*watchdog_, "copy to the GPU", bytes);
    upload_.copy(target, source, bytes);
  }

  void download(void* target, const void* source, std::size_t bytes) override {
    const Watchdog::Watch watch(*watchdog_, "copy from the GPU", bytes);
    check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToHost, compute_), "copy from the GPU");
    check(cudaStreamSynchronize(compute_), "copy from the GPU");
  }

  void copy(void* target, const void* source, std::size_t bytes) override {
    check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, compute_), "queue a copy on the GPU");
  }

  void wait(Queue queue, Queue earlier) override {
    if (queue == earlier) return;
    const Watchdog::Watch watch(*watchdog_, "ordering of the GPU's queues", 0);
    const Lane& first = lane(earlier);
    check(cudaEventRecord(first.done.get(), first.stream.get()), "queue an event");
    check(cudaStreamWaitEvent(stream(queue), first.done.get(), 0), "let a queue wait for another");
  }

  void synchronize() override {
    finish(Queue::compute);
    finish(Queue::communication);
    finish(Queue::copy);
  }

  void watch_waits(Watchdog* watchdog) noexcept override { watchdog_ = watchdog == nullptr ? &nobody_ : watchdog; }

  [[nodiscard]] void* native(Queue queue) noexcept override { return stream(queue); }

  [[nodiscard]] std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    return capture_cuda_graph(compute_, work);
  }

  void ignore_alignment() override { matmul_.ignore_alignment(); }

  void linear_forward(const LinearForward& op) override {
    if (op.rows == 0) return;
    float* z = op.z == nullptr ? op.y : op.z;
    const bool relu = op.activation == Activation::relu;
    if (matmul_.forward(op.rows, op.in, op.out, op.x, op.weight, op.bias, z, relu)) return;
    passes::activate(op.activation, op.rows * op.out, z, op.y, compute_);
  }

  void linear_backward(const LinearBackward& op) override {
    if (op.rows == 0) {
      if (op.add) return;
      clear(op.weight_gradient, op.out * op.in);
      clear(op.bias_gradient, op.out);
      return;
    }
    if (op.weight_gradient != nullptr) {
      matmul_.gradient(op.rows, op.in, op.out, op.x, op.dy, op.add, op.weight_gradient, op.bias_gradient);
    }
    input_gradient(op.rows, op.in, op.out, op.dy, op.weight, op.input);
  }

  void linear_loss(const LinearLoss& op) override {
    const std::int64_t out = op.heads * op.out;
    if (op.rows == 0) {
      if (op.add) return;
      clear(op.loss_sum, op.heads);
      clear(op.loss, op.heads);
      clear(op.weight_gradient, out * op.in);
      clear(op.bias_gradient, out);
      return;
    }
    const bool gradients = op.weight_gradient != nullptr;
    float* y = outputs(op.rows * out);  // becomes dy
    linear_forward({op.rows, op.in, out, op.x, op.weight, op.bias, y});
    passes::loss(op, y, static_cast<double*>(partials_.get()), compute_);
    if (!gradients) return;
    matmul_.gradient(op.rows, op.in, out, op.x, y, op.add, op.weight_gradient, op.bias_gradient);
    input_gradient(op.rows, op.in, out, y, op.weight, op.input);
  }

  void linear_products(const LinearProducts& op) override {
    matmul_.forward(op.rows, op.in, op.out, op.x, op.weight, nullptr, op.y);
    matmul_.gradient(op.rows, op.in, op.out, op.x, op.y, false, op.weight_gradient, nullptr);
    if (op.dx != nullptr) matmul_.input_gradient(op.rows, op.in, op.out, op.y, op.weight, op.dx);
  }

  void square_sum(const Gradient& gradient, double* sum, bool add) override {
    check(kernels::square_sum(arguments_of(gradient), static_cast<double*>(partials_.get()), sum, add, compute_),
          "queue the norm of the gradients");
  }

  void sgd_update(const Gradient& gradient, const SgdUpdate& op, const float* lr) override {
    const kernels::SgdStep<float> step{0, op.momentum, op.dampening, op.weight_decay, op.nesterov, op.first};
    check(kernels::sgd_update(arguments_of(gradient), step, lr, op.momentum_buffer, compute_), "queue the SGD update");
  }

  void adam_update(const Gradient& gradient, const AdamUpdate& op, const float* scalars) override {
    const auto step = kernels::AdamStep::from(op.beta1, op.beta2, op.eps, op.weight_decay);
    check(kernels::adam_update(arguments_of(gradient), step, scalars, op.mean, op.square, op.greatest, compute_),
          "queue the Adam update");
  }

  void accumulate(const float* values, std::int64_t numel, double factor, double* sums) override {
    check(kernels::accumulate(values, numel, factor, sums, compute_), "queue an addition");
  }

  void widen(const float* values, std::int64_t numel, double* result) override {
    check(kernels::widen(values, numel, result, compute_), "queue a conversion");
  }

  void add(const float* values, std::int64_t numel, float factor, float* sums, bool overwrite) override {
    check(kernels::add(values, numel, factor, sums, overwrite, compute_), "queue an addition");
  }

  void orthonormalize(std::int64_t rows, std::int64_t columns, float* values) override {
    check(kernels::orthonormalize(rows, columns, values, compute_), "queue an orthonormalisation");
  }

  void to_half(HalfType type, const float* values, std::int64_t numel, std::uint16_t* result) override {
    passes::to_half(type, values, numel, result, compute_);
  }

  void from_half(HalfType type, const std::uint16_t* values, std::int64_t numel, float* result) override {
    passes::from_half(type, values, numel, result, compute_);
  }

 private:
  static int bind(int ordinal) {
    if (const cudaError_t status = cudaSetDevice(ordinal); status != cudaSuccess) {
      fail_cuda(status, fmt::format("bind this rank to CUDA device {}", ordinal));
    }
    return ordinal;
  }

  static int highest_priority() {
    int lowest = 0, highest = 0;
    check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "ask for the priorities of streams");
    return highest;
  }

  const Lane& lane(Queue queue) const noexcept { return lanes_[static_cast<std::size_t>(queue)]; }
  cudaStream_t stream(Queue queue) const noexcept { return lane(queue).stream.get(); }

  void finish(Queue queue) {
    const Watchdog::Watch watch(*watchdog_, "wait for the GPU", 0);
    check(cudaStreamSynchronize(stream(queue)), "wait for the GPU");
  }

  void input_gradient(std::int64_t rows, std::int64_t in, std::int64_t out, const float* dy, const float* weight,
                      const InputGradient& input) {
    if (input.dz == nullptr) return;
    matmul_.input_gradient(rows, in, out, dy, weight, input.dz);
    passes::through_activation(input.activation, rows * in, input.kept, input.dz, compute_);
  }

  static kernels::GradientArguments arguments_of(const Gradient& gradient) {
    return {gradient.numel, gradient.parameters, gradient.gradients, gradient.penalized,
            gradient.l2,    gradient.max_norm,   gradient.square_sum};
  }

  template <class T>
  void clear(T* values, std::int64_t numel) {
    if (values == nullptr || numel == 0) return;
    check(cudaMemsetAsync(values, 0, static_cast<std::size_t>(numel) * sizeof(T), compute_), "queue zeros");
  }

  /// Room for so many outputs; it grows when a larger batch than ever comes, that is in the first steps. Smaller rooms
  /// stay, since recordings may use them.
  float* outputs(std::int64_t numel) {
    if (numel > outputs_numel_) {
      outputs_.push_back(cuda_memory(static_cast<std::size_t>(numel) * sizeof(float)));
      outputs_numel_ = numel;
    }
    return static_cast<float*>(outputs_.back().get());
  }

  int ordinal_;
  std::array<Lane, 3> lanes_;  // by Queue
  cudaStream_t compute_;
  CudaUpload upload_;
  CudaMatmul matmul_;
  CudaMemory partials_;                      // of a sum's blocks
  std::map<void*, NcclMemory> nccl_memory_;  // by address
  std::vector<CudaMemory> outputs_;
  std::int64_t outputs_numel_ = 0;
  Watchdog nobody_;
  Watchdog* watchdog_ = &nobody_;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(int ordinal) {
  return std::make_unique<CudaDevice>(ordinal);
}

}  // namespace ddp
