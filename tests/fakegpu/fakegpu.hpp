#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

/// What the stand-ins for the CUDA runtime, cuBLASLt and NCCL share. libcudart's exports it; the others link against
/// it.
namespace fakegpu {

/// Runs `work` on the stream's worker thread, after all that was queued before; while the stream is captured, records
/// it into the graph instead. `what` names it in messages.
cudaError_t enqueue(cudaStream_t stream, const char* what, std::function<void()> work);

/// Whether work given to the stream is recorded.
bool is_captured(cudaStream_t stream);

/// The address at which worker threads may read and write device memory; host code cannot touch the one it was given.
void* real(const void* device_pointer);
template <class T>
T* real(T* device_pointer) {
  return static_cast<T*>(real(static_cast<const void*>(device_pointer)));
}

/// Whether [pointer, pointer + bytes) lies within one live allocation of the current device.
bool is_device_range(const void* pointer, std::size_t bytes);

/// Ends the process with a message that names the call and the rule it broke: what the stand-in does not model, or what
/// real hardware would do silently wrong.
[[noreturn]] void die(const std::string& message);

/// The fault injected into this call of `name`: 0 for none, else the library's own error number to return. A hang is
/// entered here and never left. Every exported function calls it first.
int fault(const char* name);

/// The device of the calling thread (an ordinal among the visible ones), and its UUID's text and number on the host.
int current_device();
std::string device_uuid(int ordinal);

/// Objects that the program must give back: reported at exit when it did not. Kinds: "stream", "event", "memory", ….
void count_object(const char* kind, int difference);

}  // namespace fakegpu
