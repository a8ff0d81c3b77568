#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

namespace ddp::test {

/// As they lie in memory, or the other way round.
template <class T>
std::string bytes_of(const std::vector<T>& values, bool swapped = false) {
  std::string bytes;
  for (const T value : values) {
    auto one = std::bit_cast<std::array<char, sizeof(T)>>(value);
    if (swapped) std::reverse(one.begin(), one.end());
    bytes.append(one.data(), one.size());
  }
  return bytes;
}

}  // namespace ddp::test
