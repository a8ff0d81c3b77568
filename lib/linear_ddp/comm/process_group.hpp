#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <linear_ddp/device/device.hpp>
#include <linear_ddp/launch/watchdog.hpp>
#include <linear_ddp/launch/world.hpp>

namespace ddp {

enum class ElementType { u8, i64, f16, bf16, f32, f64 };
[[nodiscard]] constexpr std::size_t bytes_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::u8:
      return 1;
    case ElementType::f16:
    case ElementType::bf16:
      return 2;
    case ElementType::f32:
      return 4;
    case ElementType::i64:
    case ElementType::f64:
      return 8;
  }
  return 0;
}

enum class Reduction { sum, min, max };

template <class T>
[[nodiscard]] constexpr ElementType element_type_of() {
  if constexpr (std::is_same_v<T, float>)
    return ElementType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return ElementType::f64;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return ElementType::i64;
  else {
    static_assert(std::is_same_v<T, std::uint8_t>, "a process group moves float, double, int64_t and uint8_t");
    return ElementType::u8;
  }
}

/// Collectives over all ranks on the device's memory, in the order of its communication queue: every rank calls the
/// same ones in the same order with the same sizes. Make the queues wait for each other with Device::wait. Counts are
/// elements; reduce_scatter and all_gather of an MPI group take at most 2^31 - 1 of them a rank. Throws Error when the
/// library reports one; under NCCL also, with Status::timed_out, when a peer does not come in time (under MPI only the
/// watchdog sees that).
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  /// "mpi" or "nccl".
  [[nodiscard]] virtual std::string_view backend() const noexcept = 0;
  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;

  /// In place: every rank's values become the sum (minimum, maximum) over the ranks.
  template <class T>
  void all_reduce(std::span<T> values, Reduction reduction = Reduction::sum) {
    reduced_bytes_ += values.size_bytes();
    all_reduce_bytes(values.data(), values.size(), element_type_of<T>(), reduction);
  }
  /// The sum of numbers of 16 bits, rounded to such.
  void all_reduce(std::span<std::uint16_t> values, HalfType type) {
    reduced_bytes_ += values.size_bytes();
    all_reduce_bytes(values.data(), values.size(), type == HalfType::fp16 ? ElementType::f16 : ElementType::bf16,
                     Reduction::sum);
  }
  /// own = this rank's part of the sum over the ranks of `all`; all.size() is size() · own.size().
  template <class T>
  void reduce_scatter(std::span<const T> all, std::span<T> own) {
    reduce_scatter_bytes(all.data(), own.data(), own.size(), element_type_of<T>());
  }
  /// all = the ranks' `own` one after the other; all.size() is size() · own.size(). `own` may be its place in `all`.
  template <class T>
  void all_gather(std::span<const T> own, std::span<T> all) {
    all_gather_bytes(own.data(), all.data(), own.size(), element_type_of<T>());
  }
  /// How many bytes this rank has given to all_reduce so far. Replays of a recording do not count.
  [[nodiscard]] std::uint64_t reduced_bytes() const noexcept { return reduced_bytes_; }
  /// In place: every rank's values become the root's.
  template <class T>
  void broadcast(std::span<T> values, int root) {
    broadcast_bytes(values.data(), values.size(), element_type_of<T>(), root);
  }
  /// Collective. Offers memory of MemoryUse::communication that collectives will often use, which the group may then
  /// reach faster; results are the same. All ranks then give a collective the same part of it. Give what it returns
  /// (null: the offer was not taken) to deregister_memory before the memory is released, also after close().
  [[nodiscard]] virtual void* register_memory(void* memory, std::size_t bytes) = 0;
  virtual void deregister_memory(void* registration) noexcept = 0;
  /// Waits until all ranks have come here and their earlier collectives are done.
  virtual void barrier() = 0;

  /// Collective, once, after the last operation: finishes what is queued and leaves the group in good order. A group
  /// destroyed without it (while an error unwinds) is aborted, which needs no peer.
  virtual void close() = 0;

 protected:
  virtual void all_reduce_bytes(void* values, std::size_t numel, ElementType type, Reduction reduction) = 0;
  virtual void reduce_scatter_bytes(const void* all, void* own, std::size_t own_numel, ElementType type) = 0;
  virtual void all_gather_bytes(const void* own, void* all, std::size_t own_numel, ElementType type) = 0;
  virtual void broadcast_bytes(void* values, std::size_t numel, ElementType type, int root) = 0;

 private:
  std::uint64_t reduced_bytes_ = 0;
};

/// Collectives on host memory by MPI; the device is the CPU. Where the ranks of a host can share memory, all_reduce
/// goes through that, and combines their values in rank order. The world and the watchdog outlive the group. `part`
/// divides a host's ranks further, as for hosts of their own. Collective.
[[nodiscard]] std::unique_ptr<ProcessGroup> make_mpi_group(const World& world, Watchdog& watchdog, int part = 0);

/// Collectives on GPU memory by NCCL, on the device's communication queue. Collective: rank 0's ncclUniqueId goes round
/// by MPI, every rank joins with a non-blocking communicator, polled until `timeout`. Throws Error with NCCL's own
/// texts; UseError when this build has no NCCL.
[[nodiscard]] std::unique_ptr<ProcessGroup> make_nccl_group(const World& world, Device& device, Watchdog& watchdog,
                                                            std::chrono::seconds timeout);

/// "2.28.9" as loaded at run time; empty when built without NCCL.
[[nodiscard]] std::string nccl_version();

}  // namespace ddp
