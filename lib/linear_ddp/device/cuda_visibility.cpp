#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include <linear_ddp/device/device.hpp>

namespace ddp {
namespace {

std::string version_text(int version) {
  return version == 0 ? std::string{} : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// As nvidia-smi prints it.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    const bool begins_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", begins_group ? "-" : "", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

/// The likeliest of the reasons first: what the user set, what the machine lacks, what the driver says.
std::string why_none(cudaError_t status, int runtime, int driver) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && std::string_view(visible).empty()) return "CUDA_VISIBLE_DEVICES is empty";
  if (visible != nullptr && visible[0] == '-') return fmt::format("CUDA_VISIBLE_DEVICES is {}", visible);
  const bool finds_none = status == cudaSuccess || status == cudaErrorNoDevice;
  if (driver == 0 && (finds_none || status == cudaErrorInsufficientDriver)) return "no NVIDIA driver on this machine";
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format("the NVIDIA driver is for CUDA {}, older than this program's CUDA {}", version_text(driver),
                       version_text(runtime));
  }
  if (finds_none) {
    return visible == nullptr ? std::string("the NVIDIA driver finds no GPU")
                              : fmt::format("the NVIDIA driver finds no GPU with CUDA_VISIBLE_DEVICES={}", visible);
  }
  return fmt::format("{}: {}", cudaGetErrorName(status), cudaGetErrorString(status));
}

}  // namespace

CudaVisibility visible_cuda_devices() {
  int runtime = 0, driver = 0, count = 0;
  // Without a driver these two still succeed, the second one with 0.
  cudaError_t status = cudaRuntimeGetVersion(&runtime);
  if (status == cudaSuccess) status = cudaDriverGetVersion(&driver);
  if (status == cudaSuccess) status = cudaGetDeviceCount(&count);

  CudaVisibility result;
  result.runtime_version = version_text(runtime);
  result.driver_version = version_text(driver);
  for (int ordinal = 0; status == cudaSuccess && ordinal < count; ++ordinal) {
    cudaDeviceProp properties{};
    status = cudaGetDeviceProperties(&properties, ordinal);
    result.gpus.push_back({uuid_text(properties.uuid), properties.name});
  }
  if (status != cudaSuccess) {
    result.gpus.clear();  // a list with a hole would give ranks the wrong ordinals
    (void)cudaGetLastError();
  }
  if (result.gpus.empty()) result.why_none = why_none(status, runtime, driver);
  return result;
}

}  // namespace ddp
