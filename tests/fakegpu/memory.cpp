// Device memory: one memfd, mapped twice. Host code holds addresses of the first mapping, which nobody may touch; the
// workers add a constant and are in the second, where exactly the live allocations may be touched.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "runtime.hpp"

namespace fakegpu {
namespace {

constexpr std::size_t page = 4096, alignment = 256;  // as cudaMalloc promises
constexpr std::size_t total_bytes = std::size_t{8} << 30U;
constexpr int poison = 0xFF;  // NaN as float and as double

constexpr std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

void* pointer_at(std::size_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT: the addresses are ours to choose
}

std::size_t address_of(const void* pointer) {
  return reinterpret_cast<std::size_t>(pointer);
}

class DeviceMemory {
 public:
  DeviceMemory() : file_(memfd_create("fakegpu", MFD_CLOEXEC)) {
    if (file_ < 0 || ftruncate(file_, device_span) != 0) die("cannot make the file that holds device memory");
    for (const std::size_t base : {device_base, device_base + worker_offset}) {
      constexpr int flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
      if (mmap(pointer_at(base), device_span, PROT_NONE, flags, file_, 0) != pointer_at(base)) {
        die("cannot map device memory at its fixed address");
      }
    }
  }

  /// Null when there is no room. Ends at the guard page, or less than `alignment` before it.
  void* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > total_bytes - used_) return nullptr;
    const std::size_t whole = round_up(bytes, page);
    if (whole + page > device_base + device_span - next_) die("all addresses of device memory were used once");
    const Allocation allocation{next_, whole, bytes, current_device()};
    const std::size_t start = next_ + whole - round_up(bytes, alignment);
    next_ += whole + page;
    used_ += bytes;
    protect(allocation, PROT_READ | PROT_WRITE);
    std::memset(pointer_at(allocation.first_page + worker_offset), poison, whole);
    live_.emplace(start, allocation);
    return pointer_at(start);
  }

  bool release(const void* pointer) {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(address_of(pointer));
    if (found == live_.end()) return false;
    const auto& [start, allocation] = *found;
    check_margins(start, allocation);
    protect(allocation, PROT_NONE);
    const auto at = static_cast<off_t>(allocation.first_page - device_base);
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, static_cast<off_t>(allocation.whole));
    used_ -= allocation.bytes;
    live_.erase(found);
    return true;
  }

  bool contains(const void* pointer, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t address = address_of(pointer);
    auto after = live_.upper_bound(address);
    if (after == live_.begin()) return false;
    const auto& [start, allocation] = *--after;
    const std::size_t offset = address - start;
    return allocation.device == current_device() && offset <= allocation.bytes && bytes <= allocation.bytes - offset;
  }

  std::size_t free_bytes() {
    const std::lock_guard lock(mutex_);
    return total_bytes - used_;
  }

 private:
  struct Allocation {
    std::size_t first_page, whole, bytes;
    int device;
  };

  static void protect(const Allocation& allocation, int rights) {
    if (mprotect(pointer_at(allocation.first_page + worker_offset), allocation.whole, rights) != 0) {
      die("cannot change the rights of device memory");
    }
  }

  /// What alignment leaves between the allocation and its guards can be written without a crash.
  static void check_margins(std::size_t start, const Allocation& allocation) {
    const auto untouched = [](std::size_t from, std::size_t to) {
      const auto* bytes = static_cast<const unsigned char*>(pointer_at(from + worker_offset));
      return std::all_of(bytes, bytes + (to - from), [](unsigned char byte) { return byte == poison; });
    };
    if (!untouched(allocation.first_page, start) ||
        !untouched(start + allocation.bytes, allocation.first_page + allocation.whole)) {
      die("written just outside an allocation of " + std::to_string(allocation.bytes) + " bytes");
    }
  }

  std::mutex mutex_;
  int file_;
  std::size_t next_ = device_base + page, used_ = 0;
  std::map<std::size_t, Allocation> live_;
};

DeviceMemory& device_memory() {
  static auto& memory = *new DeviceMemory;
  return memory;
}

struct PinnedMemory {
  std::mutex mutex;
  std::map<std::size_t, std::size_t> sizes;
};

PinnedMemory& pinned_memory() {
  static auto& memory = *new PinnedMemory;
  return memory;
}

bool is_pinned(std::size_t address) {
  const std::lock_guard lock(pinned_memory().mutex);
  auto after = pinned_memory().sizes.upper_bound(address);
  if (after == pinned_memory().sizes.begin()) return false;
  --after;
  return address - after->first < after->second;
}

}  // namespace

void* real(const void* device_pointer) {
  const std::size_t address = address_of(device_pointer);
  return pointer_at(is_device_address(address) ? address + worker_offset : address);
}

bool is_device_range(const void* pointer, std::size_t bytes) {
  return is_device_address(address_of(pointer)) && device_memory().contains(pointer, bytes);
}

Place place_of(const void* pointer) {
  if (is_device_address(address_of(pointer))) return Place::device;
  return is_pinned(address_of(pointer)) ? Place::pinned : Place::pageable;
}

}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return call(__func__, [&] {
    if (const cudaError_t status = refuse_in_capture(); status != cudaSuccess) return status;
    *pointer = bytes == 0 ? nullptr : device_memory().allocate(bytes);
    if (bytes > 0 && *pointer == nullptr) return cudaErrorMemoryAllocation;
    if (bytes > 0) count_object("memory", 1);
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* pointer) {
  return call(__func__, [&] {
    if (const cudaError_t status = refuse_in_capture(); status != cudaSuccess) return status;
    if (pointer == nullptr) return cudaSuccess;
    wait_for_device();
    if (!device_memory().release(pointer)) return cudaErrorInvalidValue;
    count_object("memory", -1);
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return call(__func__, [&] {
    if (const cudaError_t status = refuse_in_capture(); status != cudaSuccess) return status;
    *pointer = std::aligned_alloc(page, round_up(std::max<std::size_t>(bytes, 1), page));
    if (*pointer == nullptr) return cudaErrorMemoryAllocation;
    std::memset(*pointer, poison, bytes);
    const std::lock_guard lock(pinned_memory().mutex);
    pinned_memory().sizes.emplace(address_of(*pointer), bytes);
    count_object("pinned memory", 1);
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* pointer) {
  return call(__func__, [&] {
    if (const cudaError_t status = refuse_in_capture(); status != cudaSuccess) return status;
    if (pointer == nullptr) return cudaSuccess;
    wait_for_device();
    const std::lock_guard lock(pinned_memory().mutex);
    if (pinned_memory().sizes.erase(address_of(pointer)) == 0) return cudaErrorInvalidValue;
    std::free(pointer);
    count_object("pinned memory", -1);
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  return call(__func__, [&] {
    *free_bytes = device_memory().free_bytes();
    *total = total_bytes;
    return cudaSuccess;
  });
}
}
