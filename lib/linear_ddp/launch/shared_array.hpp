#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// Floats that all ranks need: one copy for the ranks of each host. Written once, then only read.
class SharedArray {
 public:
  /// Values [first, first + count).
  struct Range {
    std::int64_t first = 0, count = 0;
  };

  SharedArray();
  /// This rank's own copy.
  SharedArray(std::vector<float> own);  // NOLINT(google-explicit-constructor): a vector is an array that is not shared
  /// Collective. The ranks of a host share memory when they are several and the host has it to share: else each has its
  /// own copy. Throws AgreedError when there is no memory at all. `part` divides a host's ranks further, as for hosts
  /// of their own.
  SharedArray(const World& world, std::int64_t size, int part = 0);
  ~SharedArray();
  SharedArray(SharedArray&&) noexcept;
  SharedArray& operator=(SharedArray&&) noexcept;

  [[nodiscard]] float* data() noexcept;
  [[nodiscard]] const float* data() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] float operator[](std::size_t i) const noexcept { return data()[i]; }
  [[nodiscard]] bool is_shared() const noexcept { return is_shared_; }
  /// Why the ranks of this host do not share, though they are several; else empty.
  [[nodiscard]] const std::string& why_not_shared() const noexcept { return why_not_shared_; }

  /// Collective, once. Each rank has written the values of its own ranges; afterwards every copy has all of them.
  void exchange(const World& world, const std::vector<Range>& own);

 private:
  class Mapping;
  void share(const World& world, std::size_t bytes, int part);
  void send(MPI_Comm copies, const Range& range, int root);

  std::vector<float> own_;
  std::unique_ptr<Mapping> mapping_;
  std::size_t size_ = 0;
  bool is_shared_ = false;
  int holder_ = 0;  ///< the first of the ranks that have this copy
  std::string why_not_shared_;
};

}  // namespace ddp
