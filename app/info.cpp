#include <fmt/format.h>

#include <cstdlib>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include "commands.hpp"
#include "console.hpp"
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
  Console console(world.rank() != 0, {});
  console.line("linear_ddp", std::string(version()));
  console.line("MPI", mpi_version());
  console.line("NCCL", or_none(nccl_version()));
  console.line("CUDA",
               fmt::format("runtime {}, driver {}", or_none(cuda.runtime_version), or_none(cuda.driver_version)));
  if (const char* kernels = std::getenv("OPENBLAS_CORETYPE")) {
    console.line("warning", fmt::format("OPENBLAS_CORETYPE={} is set: OpenBLAS computes with that CPU's kernels, "
                                        "whichever this one is; unset it for the fastest",
                                        kernels));
  }
  for (const auto& rank : ranks) console.line("rank", rank);
  try {
    const SelectedDevice selected = select_device(world, DeviceRequest::automatic);
    console.line("device", selected.reason);
    console.line("would use", fmt::format("{}, backend {}", selected.device->description(),
                                          choose_backend("auto", *selected.device)));
  } catch (const AgreedError& error) {  // which the lines above explain
    console.line("would use", fmt::format("nothing: {}", error.what()));
    throw;
  }
}

}  // namespace ddp::app
