#pragma once

#include <memory>
#include <string>
#include <vector>

#include <linear_ddp/device/device.hpp>
#include <linear_ddp/launch/world.hpp>

namespace ddp {

enum class DeviceRequest { automatic, cuda, cpu };

struct SelectedDevice {
  std::unique_ptr<Device> device;
  std::string reason;  ///< one line: what was chosen and why
};

/// Collective. Binds each rank to its device: the GPU at (local rank mod visible GPUs), or the CPU.
///   cuda       every rank must see a GPU of its own; two ranks on one GPU (same host and UUID) are refused by name, as
///              are ranks that see none. Throws AgreedError.
///   automatic  CUDA when every rank has a usable GPU of its own; the CPU when none sees one, or some would share one.
///              When some ranks see GPUs and others don't, AgreedError: ask for --device cpu, or mend the nodes.
/// LINEAR_DDP_SHARE_GPUS=1 in the environment of all ranks lets ranks share a GPU, for tests on a machine with one:
/// NCCL itself refuses that unless told to look away (tests/gpu/share-gpus), and it is slow.
[[nodiscard]] SelectedDevice select_device(const World& world, DeviceRequest request);

/// What the choice depends on, of one rank.
struct RankGpus {
  std::string host;
  int local_rank = 0;
  std::vector<CudaVisibility::Gpu> gpus;
  std::string why_none;
};

struct DeviceChoice {
  std::vector<int> ordinals;  ///< of each rank's GPU; empty for the CPU
  std::string reason;
};

/// Whether ranks may have a GPU in common.
enum class Sharing { refused, allowed };

/// select_device's choice from what all the ranks see; no collective. Throws AgreedError.
[[nodiscard]] DeviceChoice choose_devices(const std::vector<RankGpus>& ranks, DeviceRequest request,
                                          Sharing sharing = Sharing::refused);

}  // namespace ddp
