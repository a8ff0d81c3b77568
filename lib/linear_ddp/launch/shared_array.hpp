#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// Bytes that all ranks need: one copy for the ranks of each host. Written once, then only read.
class SharedMemory {
 public:
  /// Bytes [first, first + count).
  struct Range {
    std::int64_t first = 0, count = 0;
  };

  SharedMemory();
  /// Collective. The ranks of a host share memory when they are several and the host has it to share: else each has its
  /// own copy. Throws AgreedError when there is no memory at all. `part` divides a host's ranks further, as for hosts
  /// of their own.
  SharedMemory(const World& world, std::size_t bytes, int part = 0);
  ~SharedMemory();
  SharedMemory(SharedMemory&&) noexcept;
  SharedMemory& operator=(SharedMemory&&) noexcept;

  /// At a page's begin; null when there are no bytes.
  [[nodiscard]] std::byte* data() const noexcept;
  [[nodiscard]] bool is_shared() const noexcept { return is_shared_; }
  /// The first of the ranks that have this copy.
  [[nodiscard]] int holder() const noexcept { return holder_; }
  /// Why the ranks of this host do not share, though they are several; else empty.
  [[nodiscard]] const std::string& why_not_shared() const noexcept { return why_not_shared_; }

  /// Collective, once. Each rank has written its own ranges; afterwards every copy has all of them.
  void exchange(const World& world, const std::vector<Range>& own);

 private:
  class Mapping;
  void share(const World& world, std::size_t bytes, int part);
  void send(MPI_Comm copies, const Range& range, int root);

  std::unique_ptr<Mapping> mapping_;
  bool is_shared_ = false;
  int holder_ = 0;
  std::string why_not_shared_;
};

/// Values that all ranks need: as SharedMemory, or an array of this rank's own.
template <class T>
class SharedArrayOf {
 public:
  /// Values [first, first + count).
  using Range = SharedMemory::Range;

  SharedArrayOf() = default;
  SharedArrayOf(std::vector<T> own)  // NOLINT(google-explicit-constructor): a vector is an array that is not shared
      : own_(std::move(own)), data_(own_.data()), size_(own_.size()) {}
  SharedArrayOf(const World& world, std::int64_t size, int part = 0)
      : memory_(world,
                checked_product(narrow<std::size_t>(size, "the number of values"), sizeof(T), "the bytes of the data"),
                part),
        data_(reinterpret_cast<T*>(memory_.data())),
        size_(static_cast<std::size_t>(size)) {}

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] bool is_shared() const noexcept { return memory_.is_shared(); }
  [[nodiscard]] const std::string& why_not_shared() const noexcept { return memory_.why_not_shared(); }

  void exchange(const World& world, std::vector<Range> own) {
    constexpr std::int64_t bytes = sizeof(T);
    for (Range& range : own) range = {range.first * bytes, range.count * bytes};
    memory_.exchange(world, own);
  }

 private:
  SharedMemory memory_;
  std::vector<T> own_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

using SharedArray = SharedArrayOf<float>;

/// Collective. What a person should know when the ranks of a host do not share it; else empty. The same on all ranks.
[[nodiscard]] std::string notice_of_copies(const World& world, const std::string& why_not_shared);

}  // namespace ddp
