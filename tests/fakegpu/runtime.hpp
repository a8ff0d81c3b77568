#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "fakegpu.hpp"
#include "handles.hpp"

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
  /// 1 for the first stream that the program made.
  [[nodiscard]] int number() const;

 private:
  struct State;
  static void loop(State& state);
  std::shared_ptr<State> state_;
};

/// Whether this wait, for work of that stream, is the one that LINEAR_DDP_FAKE_IGNORE_WAIT says to leave out.
bool ignore_this_wait(const char* name, int stream);

/// Sleeps at random, when LINEAR_DDP_FAKE_DELAYS asks for it. Called by workers.
void delay();
/// A random number below `bound`, from the calling worker's own sequence.
std::size_t draw(std::size_t bound);

/// Work that is recorded in place of being queued, and the numbers of the nodes that an edge leads from.
struct Node {
  std::function<void()> work;
  std::set<std::size_t> after;
};

struct Capture {
  cudaStream_t origin = nullptr;  ///< null once the capture has ended
  std::vector<Node> nodes;
  cudaError_t invalid = cudaSuccess;
};

struct Stream {
  std::shared_ptr<Worker> worker;
  std::shared_ptr<Capture> capture;  ///< while captured
  std::set<std::size_t> tail;        ///< the captured nodes that the next one comes after
};

struct Event {
  std::shared_ptr<Worker> worker;  ///< of the last record; null before
  Ticket ticket = 0;
  std::shared_ptr<Capture> capture;  ///< when the last record was captured
  std::set<std::size_t> tail;
};

Handles<cudaStream_t, Stream>& streams();
Handles<cudaEvent_t, Event>& events();

/// Waits until every stream has done all its work.
void wait_for_device();

/// The capture becomes unusable, and the call that broke it fails.
cudaError_t invalidate(Capture& capture, cudaError_t status);
/// The capture that the calling thread began and has not ended.
std::shared_ptr<Capture>& thread_capture();
/// The answer of calls that are unsafe during it.
cudaError_t refuse_in_capture();

/// How a copy treats an address.
enum class Place { device, pinned, pageable };
Place place_of(const void* pointer);

/// The addresses that the host program sees, and the constant that leads to those of the workers.
constexpr std::size_t device_base = 0x1000'0000'0000, device_span = std::size_t{1} << 40U,
                      worker_offset = 0x0800'0000'0000;
constexpr bool is_device_address(std::size_t address) {
  return address >= device_base && address < device_base + device_span;
}

}  // namespace fakegpu
