#pragma once

#include <memory>
#include <string>

#include <linear_ddp/device/device.hpp>
#include <linear_ddp/launch/world.hpp>

namespace ddp {

enum class DeviceRequest { automatic, cuda, cpu };

struct SelectedDevice {
  std::unique_ptr<Device> device;
  std::string reason;  ///< one line: what was chosen and why
};

/// Collective. Binds each rank to its device: the GPU at (local rank mod visible GPUs), or the CPU.
///   cuda       every rank must see a GPU of its own; two ranks on one GPU (same host and UUID) are refused by name, as are
///              ranks that see none. Throws AgreedError.
///   automatic  CUDA when every rank has a usable GPU of its own, the CPU when no rank sees one or ranks would share one.
///              When some ranks see GPUs and others don't, AgreedError: ask for --device cpu, or mend the nodes.
[[nodiscard]] SelectedDevice select_device(const World& world, DeviceRequest request);

}  // namespace ddp
