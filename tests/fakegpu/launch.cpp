// Kernels: the program launches by the address of nvcc's host stub, which nvcc registered under the mangled name of the
// kernel; libhostkernels.so has a function of the same name, compiled from the same source.
#include <dlfcn.h>

#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "host_kernel.hpp"
#include "runtime.hpp"

namespace fakegpu {
namespace {

struct Kernels {
  std::mutex mutex;
  std::unordered_map<const void*, std::string> names;        // by nvcc's stub
  std::unordered_map<const void*, HostKernel> host_kernels;  // by the host's function
};

Kernels& kernels() {
  static auto& kernels = *new Kernels;
  return kernels;
}

/// Beside this library, so that the two are of one build.
void* load_host_kernels() {
  Dl_info self{};
  dladdr(reinterpret_cast<const void*>(&load_host_kernels), &self);
  const std::string path = self.dli_fname;
  void* library = dlopen((path.substr(0, path.rfind('/') + 1) + "libhostkernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) die(dlerror());
  return library;
}

const HostKernel* find_kernel(const void* stub) {
  static void* library = load_host_kernels();
  const std::lock_guard lock(kernels().mutex);
  const auto name = kernels().names.find(stub);
  if (name == kernels().names.end()) return nullptr;
  const void* function = dlsym(library, name->second.c_str());
  const auto found = kernels().host_kernels.find(function);
  if (function == nullptr || found == kernels().host_kernels.end()) {
    die("kernel " + name->second + " is not in libhostkernels.so: is it launched by kernels/launch.hpp?");
  }
  return &found->second;
}

bool is_launchable(dim3 grid, dim3 block, std::size_t shared_bytes) {
  constexpr unsigned most_blocks = 0x7FFF'FFFF, most_blocks_yz = 65535, most_threads = 1024, most_threads_z = 64;
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= most_blocks && grid.y <= most_blocks_yz &&
         grid.z <= most_blocks_yz && block.x > 0 && block.y > 0 && block.z > 0 && block.z <= most_threads_z &&
         std::size_t{block.x} * block.y * block.z <= most_threads && shared_bytes <= 48 * 1024;
}

/// The bytes of an argument as they are at the launch. Pointers to device memory, also those within structures, become
/// the worker's: no other value looks like one (as a double it would be about 1e-310).
std::vector<std::size_t> copy_argument(const void* argument, std::size_t bytes) {
  std::vector<std::size_t> words((bytes + sizeof(std::size_t) - 1) / sizeof(std::size_t));
  std::memcpy(words.data(), argument, bytes);
  for (std::size_t& word : words) word += is_device_address(word) ? worker_offset : 0;
  return words;
}

}  // namespace

void register_host_kernel(const void* function, const HostKernel& kernel) {
  const std::lock_guard lock(kernels().mutex);
  kernels().host_kernels.emplace(function, kernel);
}

}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                             cudaStream_t stream) {
  return call(__func__, [&] {
    const HostKernel* kernel = find_kernel(stub);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    if (!is_launchable(grid, block, shared_bytes)) return cudaErrorInvalidConfiguration;
    if (shared_bytes > 0) die("cudaLaunchKernel: dynamic shared memory is not modelled");
    std::vector<std::vector<std::size_t>> copies;
    for (std::size_t i = 0; i < kernel->sizes.size(); ++i) {
      copies.push_back(copy_argument(arguments[i], kernel->sizes[i]));
    }
    return enqueue(stream, "cudaLaunchKernel", [kernel, grid, block, copies] {
      auto values = copies;  // a captured launch runs many times, and a kernel may change its parameters
      std::vector<void*> addresses;
      for (auto& value : values) addresses.push_back(value.data());
      kernel->run(addresses.data(), grid, block);
    });
  });
}

// Below: what nvcc's own code calls. CUDA's headers do not declare it.

void** __cudaRegisterFatBinary(void* /*image*/) {
  static void* handle = nullptr;
  return &handle;
}

void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

void __cudaUnregisterFatBinary(void** /*handle*/) {}

// Without optimisation a reference to it stays, from code that nothing calls.
char __cudaInitModule(void** /*handle*/) {
  return 0;
}

void __cudaRegisterFunction(void** /*handle*/, const char* stub, char* /*device_function*/, const char* name,
                            int /*thread_limit*/, uint3*, uint3*, dim3*, dim3*, int*) {
  const std::lock_guard lock(kernels().mutex);
  kernels().names[stub] = name;
}

// Not modelled: a launch by <<<>>> would be by the stub's own body, and so without launch.hpp.
[[noreturn]] cudaError_t __cudaGetKernel(cudaKernel_t* /*kernel*/, const void* /*stub*/) {
  die("a kernel is launched by <<<>>>; use launch of kernels/launch.hpp");
}

[[noreturn]] cudaError_t __cudaLaunchKernel(cudaKernel_t /*kernel*/, dim3, dim3, void**, std::size_t, cudaStream_t) {
  die("a kernel is launched by <<<>>>; use launch of kernels/launch.hpp");
}

[[noreturn]] cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) {
  die("a kernel is launched by <<<>>>; use launch of kernels/launch.hpp");
}
}
