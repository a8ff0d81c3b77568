#pragma once

#include <cstdint>
#include <initializer_list>

namespace ddp::kernels {

/// `width` floats that a thread loads or stores at once.
template <int width>
struct alignas(width * sizeof(float)) Pack {
  float value[width];
};

/// Whether arrays that start at these addresses may be read as Pack<width>.
template <int width>
bool are_packs(std::initializer_list<const void*> addresses) {
  for (const void* address : addresses) {
    if (reinterpret_cast<std::uintptr_t>(address) % sizeof(Pack<width>) != 0) return false;
  }
  return true;
}

}  // namespace ddp::kernels
