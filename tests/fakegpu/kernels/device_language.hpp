#pragma once

// Forced before the kernels' sources when they are compiled for the host: CUDA's words as plain C++.

#include <cuda_runtime.h>

#include <cstring>

#include "kernels/block.hpp"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __launch_bounds__
#define __global__ __attribute__((visibility("default"), used))
#define __device__
#define __host__
#define __shared__ static thread_local  // a worker runs one block at a time
#define __launch_bounds__(...)

extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

inline void __syncthreads() {
  fakegpu::block_barrier();
}

inline void __syncwarp(unsigned /*mask*/ = ~0U) {
  fakegpu::warp_barrier();
}

namespace fakegpu {
template <class T>
T shuffle_value(T value, unsigned source) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = shuffle(bits, source);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
}  // namespace fakegpu

template <class T>
T __shfl_down_sync(unsigned /*mask*/, T value, int distance) {
  return fakegpu::shuffle_value(value, fakegpu::lane() + static_cast<unsigned>(distance));
}

template <class T>
T __shfl_xor_sync(unsigned /*mask*/, T value, int lane_mask) {
  return fakegpu::shuffle_value(value, fakegpu::lane() ^ static_cast<unsigned>(lane_mask));
}
