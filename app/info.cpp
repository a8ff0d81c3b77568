#include <fmt/format.h>

#include <linear_ddp/base/version.hpp>
#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include "commands.hpp"
#include "runtime.hpp"

namespace ddp::app {
namespace {

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

std::string or_none(const std::string& text) {
  return text.empty() ? "none" : text;
}

}  // namespace

void info(const World& world, Watchdog& watchdog) {
  const Watchdog::Watch watch(watchdog, "look at the devices", 0);
  const CudaVisibility cuda = visible_cuda_devices();
  std::string gpus;
  for (const auto& gpu : cuda.gpus) gpus += fmt::format("{}{} {}", gpus.empty() ? "" : "; ", gpu.name, gpu.uuid);
  const auto ranks = all_gather(
      world, fmt::format("{} of {} on {}, local {} of {}, GPUs: {}", world.rank(), world.size(), world.host(),
                         world.local_rank(), world.local_size(), gpus.empty() ? "none, " + cuda.why_none : gpus));
  const SelectedDevice selected = select_device(world, DeviceRequest::automatic);
  if (world.rank() != 0) return;
  fmt::print("{:<10} {}\n", "linear_ddp", version());
  fmt::print("{:<10} {}\n", "MPI", mpi_version());
  fmt::print("{:<10} {}\n", "NCCL", or_none(nccl_version()));
  fmt::print("{:<10} runtime {}, driver {}\n", "CUDA", or_none(cuda.runtime_version), or_none(cuda.driver_version));
  for (const auto& rank : ranks) fmt::print("{:<10} {}\n", "rank", rank);
  fmt::print("{:<10} {}\n", "device", selected.reason);
  fmt::print("{:<10} {}, backend {}\n", "would use", selected.device->description(),
             choose_backend("auto", *selected.device));
}

}  // namespace ddp::app
