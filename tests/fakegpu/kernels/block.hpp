#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace fakegpu {

/// Runs `kernel` for every thread of every block, with threadIdx and friends set. Blocks come one after another; the
/// threads of a block share one OS thread and change only at barriers.
void run_blocks(dim3 grid, dim3 block, const std::function<void()>& kernel);

/// Of the calling thread's block, or warp: returns when all its threads that have not ended are there.
void block_barrier();
void warp_barrier();

/// Of the calling thread in its warp.
unsigned lane();
/// The 8 bytes that lane `source` gave; its own when there is none.
std::uint64_t shuffle(std::uint64_t value, unsigned source);

}  // namespace fakegpu
