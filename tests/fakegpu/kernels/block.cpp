// The threads of a block. They run one after another on one stack; where one waits at a barrier its stack is kept, and
// the next threads run on a further one.
#include "kernels/block.hpp"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "fakegpu.hpp"

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

namespace fakegpu {
namespace {

constexpr unsigned warp_size = 32;
constexpr std::size_t stack_bytes = std::size_t{256} << 10U;

enum class State { not_begun, ready, at_block_barrier, at_warp_barrier, ended };

struct Thread {
  State state = State::not_begun;
  std::array<std::uint64_t, 2> given{};  // to shuffles, in turn: a slow reader still finds the last but one
  unsigned shuffles = 0;
};

struct Fiber {
  ucontext_t context{};
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  unsigned thread = 0;
  bool busy = false;
};

class Block {
 public:
  Block(unsigned threads, const std::function<void()>& kernel) : threads_(threads), kernel_(kernel) {}

  void run() {
    begun_ = 0;
    std::fill(threads_.begin(), threads_.end(), Thread{});
    while (begun_ < threads_.size()) resume(idle_fiber());
    do {
      for (const auto& fiber : fibers_) {
        if (fiber->busy && threads_[fiber->thread].state == State::ready) resume(*fiber);
      }
    } while (open_barriers());
  }

  void wait(State barrier) {
    threads_[running_->thread].state = barrier;
    swapcontext(&running_->context, &scheduler_);
  }

  unsigned lane() const { return running_->thread % warp_size; }

  std::uint64_t shuffle(std::uint64_t value, unsigned source) {
    const unsigned self = running_->thread;
    const unsigned turn = threads_[self].shuffles++ % 2;
    threads_[self].given[turn] = value;
    wait(State::at_warp_barrier);
    const unsigned other = self - lane() + source;
    return threads_[source < warp_size && other < threads_.size() ? other : self].given[turn];
  }

 private:
  Fiber& idle_fiber() {
    for (const auto& fiber : fibers_) {
      if (!fiber->busy) return prepare(*fiber);
    }
    return prepare(*fibers_.emplace_back(std::make_unique<Fiber>()));
  }

  Fiber& prepare(Fiber& fiber);

  void resume(Fiber& fiber) {
    running_ = &fiber;
    if (fiber.busy) set_index(fiber.thread);
    fiber.busy = true;
    swapcontext(&scheduler_, &fiber.context);
  }

  /// A fiber's life: it begins threads for as long as they end without having waited on it.
  void run_threads() {
    Fiber& fiber = *running_;
    while (begun_ < threads_.size()) {
      fiber.thread = begun_++;
      set_index(fiber.thread);
      kernel_();
      threads_[fiber.thread].state = State::ended;
    }
    fiber.busy = false;
    swapcontext(&fiber.context, &scheduler_);
  }

  static void set_index(unsigned thread) {
    threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / (blockDim.x * blockDim.y)};
  }

  /// Lets the threads on that all wait; false when all have ended.
  bool open_barriers() {
    bool opened = false;
    for (std::size_t first = 0; first < threads_.size(); first += warp_size) {
      opened |= open(first, std::min(first + warp_size, threads_.size()), State::at_warp_barrier);
    }
    opened = opened || open(0, threads_.size(), State::at_block_barrier);
    const auto ended = [](const Thread& thread) { return thread.state == State::ended; };
    if (!opened && !std::all_of(threads_.begin(), threads_.end(), ended)) {
      die("a kernel's barrier is not reached by all threads of its block");
    }
    return opened;
  }

  bool open(std::size_t first, std::size_t last, State barrier) {
    bool waiting = false;
    for (std::size_t i = first; i < last; ++i) {
      if (threads_[i].state != barrier && threads_[i].state != State::ended) return false;
      waiting |= threads_[i].state == barrier;
    }
    for (std::size_t i = first; i < last; ++i) {
      if (threads_[i].state == barrier) threads_[i].state = State::ready;
    }
    return waiting;
  }

  std::vector<Thread> threads_;
  const std::function<void()>& kernel_;
  unsigned begun_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* running_ = nullptr;
  ucontext_t scheduler_{};

  friend void enter();
};

thread_local Block* running_block = nullptr;

void enter() {
  running_block->run_threads();
}

Fiber& Block::prepare(Fiber& fiber) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = stack_bytes;
  makecontext(&fiber.context, enter, 0);
  return fiber;
}

}  // namespace

void run_blocks(dim3 grid, dim3 block, const std::function<void()>& kernel) {
  gridDim = grid;
  blockDim = block;
  Block threads(block.x * block.y * block.z, kernel);
  running_block = &threads;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        threads.run();
      }
    }
  }
}

void block_barrier() {
  running_block->wait(State::at_block_barrier);
}

void warp_barrier() {
  running_block->wait(State::at_warp_barrier);
}

unsigned lane() {
  return running_block->lane();
}

std::uint64_t shuffle(std::uint64_t value, unsigned source) {
  return running_block->shuffle(value, source);
}

}  // namespace fakegpu
