#include <cstring>
#include <memory>
#include <vector>

#include "runtime.hpp"

namespace fakegpu {
namespace {

/// LINEAR_DDP_FAKE_PAGEABLE=late: as on systems whose GPUs reach pageable memory themselves, a copy out of it is not
/// staged before the call returns, and one into it not done. Correct programs count on neither.
bool pageable_is_late() {
  const char* value = setting("LINEAR_DDP_FAKE_PAGEABLE");
  return value != nullptr && std::strcmp(value, "late") == 0;
}

bool fits(cudaMemcpyKind kind, Place target, Place source) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return target == Place::device && source != Place::device;
    case cudaMemcpyDeviceToHost:
      return target != Place::device && source == Place::device;
    case cudaMemcpyDeviceToDevice:
      return target == Place::device && source == Place::device;
    default:
      die("cudaMemcpyAsync: only copies to, from and on the device are modelled, each by its own kind");
  }
}

bool is_in_an_allocation(const void* pointer, Place place, std::size_t bytes) {
  return place != Place::device || is_device_range(pointer, bytes);
}

}  // namespace
}  // namespace fakegpu

using namespace fakegpu;

extern "C" {

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call(__func__, [&] {
    const auto queue = streams().get(stream, "cudaMemcpyAsync");
    if (bytes == 0) return cudaSuccess;
    const Place to = place_of(target), from = place_of(source);
    if (!fits(kind, to, from) || !is_in_an_allocation(target, to, bytes) || !is_in_an_allocation(source, from, bytes)) {
      return cudaErrorInvalidValue;
    }
    if (queue->capture != nullptr && (to == Place::pageable || from == Place::pageable)) {
      die("cudaMemcpyAsync: copies of pageable memory are not modelled in a capture");
    }
    if (from == Place::pageable && !pageable_is_late()) {
      const auto* begin = static_cast<const char*>(source);
      const auto staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
      return enqueue(stream, "cudaMemcpyAsync", [=] { std::memcpy(real(target), staged->data(), bytes); });
    }
    const cudaError_t status =
        enqueue(stream, "cudaMemcpyAsync", [=] { std::memmove(real(target), real(source), bytes); });
    if (status == cudaSuccess && to == Place::pageable && !pageable_is_late())
      queue->worker->wait(queue->worker->last());
    return status;
  });
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  return call(__func__, [&] {
    if (bytes > 0 && !is_device_range(target, bytes)) return cudaErrorInvalidValue;
    return enqueue(stream, "cudaMemsetAsync", [=] { std::memset(real(target), value, bytes); });
  });
}
}
