// The devices: LINEAR_DDP_FAKE_GPUS of them on the host, of which CUDA_VISIBLE_DEVICES shows some.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "runtime.hpp"

namespace fakegpu {
namespace {

thread_local int bound_device = 0;

using Uuid = std::array<unsigned char, 16>;

Uuid uuid_of(int physical) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const std::size_t hash = std::hash<std::string>{}(host);
  Uuid uuid{};
  std::memcpy(uuid.data(), &hash, sizeof hash);
  uuid[15] = static_cast<unsigned char>(physical);
  return uuid;
}

/// As nvidia-smi prints it.
std::string text_of(const Uuid& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned>(uuid[i]));
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

/// Numbers and beginnings of UUIDs; the list ends before the first that names no device, as CUDA has it.
std::vector<int> read_visible() {
  const char* number = setting("LINEAR_DDP_FAKE_GPUS");
  if (number == nullptr) die("LINEAR_DDP_FAKE_GPUS is not set: run the program under tests/fakegpu/with-fake-gpus");
  std::vector<int> all;
  for (int i = 0; i < std::atoi(number); ++i) all.push_back(i);
  const char* wanted = std::getenv("CUDA_VISIBLE_DEVICES");
  if (wanted == nullptr) return all;
  std::vector<int> visible;
  std::istringstream list(wanted);
  for (std::string item; std::getline(list, item, ',');) {
    const auto is_item = [&](int i) {
      return std::to_string(i) == item || (item.size() > 4 && text_of(uuid_of(i)).rfind(item, 0) == 0);
    };
    std::size_t at = 0;
    while (at < all.size() && !is_item(all[at])) ++at;
    if (at == all.size()) break;
    visible.push_back(all[at]);
  }
  return visible;
}

const std::vector<int>& visible_devices() {
  static const auto& devices = *new std::vector<int>(read_visible());
  return devices;
}

bool is_device(int ordinal) {
  return ordinal >= 0 && static_cast<std::size_t>(ordinal) < visible_devices().size();
}

int physical(int ordinal) {
  return visible_devices()[static_cast<std::size_t>(ordinal)];
}

}  // namespace

int current_device() {
  return bound_device;
}

std::string device_uuid(int ordinal) {
  if (!is_device(ordinal)) die("there is no device " + std::to_string(ordinal));
  return text_of(uuid_of(physical(ordinal)));
}

}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call(__func__, [&] {
    *count = static_cast<int>(visible_devices().size());
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int ordinal) {
  return call(__func__, [&] {
    if (!is_device(ordinal)) return cudaErrorInvalidDevice;
    bound_device = ordinal;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* ordinal) {
  return call(__func__, [&] {
    *ordinal = bound_device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  return call(__func__, [&] {
    if (!is_device(ordinal)) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "Stand-in GPU");
    const Uuid uuid = uuid_of(physical(ordinal));
    std::memcpy(properties->uuid.bytes, uuid.data(), uuid.size());
    properties->totalGlobalMem = std::size_t{8} << 30U;
    properties->major = 9;
    properties->multiProcessorCount = 4;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->pciBusID = physical(ordinal) + 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  return call(__func__, [&] {
    *lowest = 0;
    *highest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return call(__func__, [&] {
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return call(__func__, [&] {
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}
}
