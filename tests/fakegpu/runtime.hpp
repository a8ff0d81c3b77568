#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "fakegpu.hpp"

/// What the files of libcudart's stand-in share.
namespace fakegpu {

/// The environment's value, or null when it is not there or empty.
const char* setting(const char* name);
/// This process's place among those of the job.
int rank();

/// Makes `status` the thread's last error, and the answer of every later call when it is one that ends a context.
cudaError_t remember(cudaError_t status);
/// The error that ended the context, if any.
cudaError_t lost_context();

/// An exported function: the injected fault, or the error that ended the context, or else `body`.
template <class Body>
cudaError_t call(const char* name, const Body& body) {
  if (const int injected = fault(name); injected != 0) return remember(static_cast<cudaError_t>(injected));
  if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return remember(lost);
  return remember(body());
}

/// Whether this wait is the one that LINEAR_DDP_FAKE_IGNORE_WAIT says to leave out.
bool ignore_this_wait(const char* name);

using Ticket = std::size_t;

/// A queue of work and the thread that does it in order.
class Worker {
 public:
  static std::shared_ptr<Worker> start();

  Ticket push(std::function<void()> work);
  [[nodiscard]] Ticket last() const;
  [[nodiscard]] bool is_done(Ticket ticket) const;
  void wait(Ticket ticket) const;
  /// The thread ends when the queue is empty.
  void close();

 private:
  struct State;
  static void loop(State& state);
  std::shared_ptr<State> state_;
};

/// Sleeps at random, when LINEAR_DDP_FAKE_DELAYS asks for it. Called by workers.
void delay();
/// A random number below `bound` for the calling worker.
std::size_t draw(std::size_t bound);

/// Work recorded in place of being queued; the edges are those that CUDA would see.
struct Node {
  std::function<void()> work;
  std::set<std::size_t> after;
};

struct Capture {
  cudaStream_t origin = nullptr;
  std::vector<Node> nodes;
  cudaError_t invalid = cudaSuccess;
};

/// The capture that the calling thread began and has not ended; calls that are unsafe meanwhile make it invalid.
std::shared_ptr<Capture>& thread_capture();
cudaError_t refuse_in_capture();
/// No stream is captured into it any more.
void end_capture(const Capture& capture);

/// The stream, or the end of the process when there is none of this handle.
CUstream_st& checked(cudaStream_t stream);
CUevent_st& checked(cudaEvent_t event);

/// Waits until every stream has done all its work.
void wait_for_device();

/// How the address would be treated by a copy.
enum class Place { device, pinned, pageable };
Place place_of(const void* pointer);
/// The addresses that the host program sees, and the constant that leads to those of the workers.
constexpr std::size_t device_base = 0x1000'0000'0000, device_span = std::size_t{1} << 40U,
                      worker_offset = 0x0800'0000'0000;
constexpr bool is_device_address(std::size_t address) {
  return address >= device_base && address < device_base + device_span;
}

}  // namespace fakegpu

struct CUstream_st {
  std::shared_ptr<fakegpu::Worker> worker;
  std::shared_ptr<fakegpu::Capture> capture;  // while captured
  std::set<std::size_t> tail;                 // the captured nodes that the next one comes after
};

struct CUevent_st {
  std::shared_ptr<fakegpu::Worker> worker;  // of the last record; null before
  fakegpu::Ticket ticket = 0;
  std::shared_ptr<fakegpu::Capture> capture;  // when the last record was captured
  std::set<std::size_t> tail;
};
