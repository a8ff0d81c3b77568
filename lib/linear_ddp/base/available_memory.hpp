#pragma once

#include <cstdint>
#include <string>

namespace ddp {

/// Bytes of memory that this process may still use without swapping, as Linux tells: what the host has available, or
/// what its control groups (version 2, as Slurm sets them) leave, if that is less. `root` is where /proc and /sys are.
/// The largest number when nothing is known.
[[nodiscard]] std::int64_t available_memory(const std::string& root = "");

}  // namespace ddp
