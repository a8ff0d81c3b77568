#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/device/operations.hpp>

namespace ddp {

class Watchdog;

/// Work given to a device runs in the order of its queue; the queues run at the same time. Copy: of staging buffers.
enum class Queue { compute, communication, copy };

/// Communication: a process group will often read and write it, and may ask for memory of its own kind. The CPU's is
/// whole pages.
enum class MemoryUse { compute, communication };

/// Work of a device, recorded once to be given to it as a whole, again and again.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Queues the work, in the order of the compute queue.
  virtual void replay() = 0;
};

/// Room of one size on the host and on the device, for what is made on the host and sent over, again and again. On the
/// CPU the two are one.
class StagingBuffer {
 public:
  virtual ~StagingBuffer() = default;
  /// What to fill, aligned to 64 bytes at least. Waits until the copy of the last send has read it.
  [[nodiscard]] virtual void* host() = 0;
  /// Queued on the copy queue, which Device::wait orders with the others.
  virtual void send() = 0;
  /// Where it arrives.
  [[nodiscard]] virtual const void* device() const noexcept = 0;
};

/// Where a rank computes. Operations are asynchronous, in the order of the compute queue, unless they say "waits";
/// an error of earlier work may be thrown by any later call. One thread uses a device.
class Device {
 public:
  virtual ~Device() = default;

  /// "cpu" or "cuda".
  [[nodiscard]] virtual std::string_view kind() const noexcept = 0;
  /// For people: "NVIDIA H200, 139 GiB", "CPU, OpenBLAS 0.3.21".
  [[nodiscard]] virtual std::string description() const = 0;

  /// Whether the host may read and write this device's memory (between synchronize and the next operation).
  [[nodiscard]] virtual bool memory_is_host() const noexcept = 0;
  /// Memory, aligned to 64 bytes at least, and zeroed by the compute queue. Throws Error when there is not enough;
  /// release takes it back.
  [[nodiscard]] virtual void* allocate(std::size_t bytes, MemoryUse use) = 0;
  virtual void release(void* memory) noexcept = 0;

  [[nodiscard]] virtual std::unique_ptr<StagingBuffer> make_staging_buffer(std::size_t bytes) = 0;
  /// Copies from the host; the source may be changed as soon as the call returns.
  virtual void upload(void* target, const void* source, std::size_t bytes) = 0;
  /// Copies to the host. Waits.
  virtual void download(void* target, const void* source, std::size_t bytes) = 0;
  /// Copies within this device's memory; the two do not overlap.
  virtual void copy(void* target, const void* source, std::size_t bytes) = 0;

  /// Work given to `queue` from now on starts after the work given to `earlier` until now.
  virtual void wait(Queue queue, Queue earlier) = 0;
  /// Waits for all work of all queues.
  virtual void synchronize() = 0;
  /// From now on the watchdog sees how long the host waits for this device: behind a collective that never ends, for
  /// ever. Null: it no longer does. A process group whose collectives run on the device calls it.
  virtual void watch_waits(Watchdog* watchdog) noexcept = 0;
  /// The backend's own handle of a queue (cudaStream_t), for a process group of the same backend; null on the CPU.
  [[nodiscard]] virtual void* native(Queue queue) noexcept = 0;

  /// Records what `work` queues, without running it: on CUDA a graph, one launch for all its kernels, waits and
  /// collectives. `work` queues operations only (no memory, no copy, nothing that waits), has run before with the same
  /// shapes, and ends with the compute queue waiting for what it gave to the communication queue. Pointers and numbers
  /// stay as they were when it was recorded.
  [[nodiscard]] virtual std::unique_ptr<Recording> record(const std::function<void()>& work) = 0;

  /// From now on the bits of a product depend on its shape alone, not on where its operands lie, whatever that costs.
  virtual void ignore_alignment() = 0;

  virtual void linear_forward(const LinearForward& operation) = 0;
  virtual void linear_backward(const LinearBackward& operation) = 0;
  virtual void linear_loss(const LinearLoss& operation) = 0;
  virtual void linear_products(const LinearProducts& operation) = 0;
  /// *sum = Σ g[i]², in float64, before clipping; with `add` it is added to.
  virtual void square_sum(const Gradient& gradient, double* sum, bool add = false) = 0;
  /// `lr` is in the device's memory, so that a recording goes on with the next one; likewise Adam's three numbers.
  virtual void sgd_update(const Gradient& gradient, const SgdUpdate& operation, const float* lr) = 0;
  virtual void adam_update(const Gradient& gradient, const AdamUpdate& operation, const float* scalars) = 0;
  /// sums[numel] += factor · values[numel], of up to 1024: statistics of many steps without a wait in each.
  virtual void accumulate(const float* values, std::int64_t numel, double factor, double* sums) = 0;
  /// result[numel] = values[numel], for sums in float64 over the ranks.
  virtual void widen(const float* values, std::int64_t numel, double* result) = 0;
  /// sums[numel] += factor · values[numel], or = with `overwrite`.
  virtual void add(const float* values, std::int64_t numel, float factor, float* sums, bool overwrite = false) = 0;
  /// The columns of values[rows, columns], few, become orthogonal and of norm 1, from the first on; one that depends on
  /// those before it becomes 0.
  virtual void orthonormalize(std::int64_t rows, std::int64_t columns, float* values) = 0;
  /// result[numel] = values[numel] rounded to the nearest number of 16 bits, and the way back.
  virtual void to_half(HalfType type, const float* values, std::int64_t numel, std::uint16_t* result) = 0;
  virtual void from_half(HalfType type, const std::uint16_t* values, std::int64_t numel, float* result) = 0;
};

/// Owns zeroed memory of a device for `numel` values; Error when there can't be as many. The device outlives it.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, std::int64_t numel, MemoryUse use = MemoryUse::compute)
      : device_(&device), data_(static_cast<T*>(device.allocate(bytes_of(numel), use))), numel_(numel) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) device_->release(data_);
  }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }
  /// A range of the device's memory: the host may read it only on the CPU device.
  [[nodiscard]] std::span<T> span() noexcept { return {data_, static_cast<std::size_t>(numel_)}; }

  /// The first of its values. Queued. Throws Error when there are more than numel().
  void upload(std::span<const T> values) {
    require_room("fill a buffer", values.size());
    device_->upload(data_, values.data(), values.size_bytes());
  }
  /// The first of its values. Waits. Throws Error when there are more than numel().
  void download(std::span<T> values) const {
    require_room("read a buffer", values.size());
    device_->download(values.data(), data_, values.size_bytes());
  }

 private:
  static std::size_t bytes_of(std::int64_t numel) {
    return checked_product(narrow<std::size_t>(numel, "the number of a buffer's values"), sizeof(T),
                           "a buffer's bytes");
  }
  void require_room(const char* attempt, std::size_t numel) const {
    if (std::cmp_less_equal(numel, numel_)) return;
    fail(attempt, std::to_string(numel) + " values do not fit into " + std::to_string(numel_));
  }
  void swap(Buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(numel_, other.numel_);
  }

  Device* device_ = nullptr;
  T* data_ = nullptr;
  std::int64_t numel_ = 0;
};

/// Matrix products by a BLAS when built with one, else by Eigen.
[[nodiscard]] std::unique_ptr<Device> make_cpu_device();

/// Binds the calling thread to the visible CUDA device `ordinal` and makes its queues. Throws Error; when this build
/// has no CUDA, UseError.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(int ordinal);

/// What this process sees of CUDA, without initialising a device for computing.
struct CudaVisibility {
  struct Gpu {
    std::string uuid, name;
  };
  std::vector<Gpu> gpus;
  /// When there are none: "no NVIDIA driver", "CUDA_VISIBLE_DEVICES is empty", "built without CUDA".
  std::string why_none;
  std::string runtime_version, driver_version;  ///< "13.0"; empty when unknown
};
[[nodiscard]] CudaVisibility visible_cuda_devices();

}  // namespace ddp
