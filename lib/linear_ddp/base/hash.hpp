#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ddp {

/// FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/), of a sequence of byte ranges.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    for (const std::byte byte : bytes) {
      value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3U;
    }
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace ddp
