#include "linear_ddp/comm/host_group.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>

#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/launch/mpi_check.hpp>
#include "linear_ddp/comm/combine.hpp"
#include "linear_ddp/comm/mpi_types.hpp"

namespace ddp {
namespace {

constexpr std::size_t cache_line = 64;
/// Below it, to do the whole sum on every rank takes less time than to wait for each other once more.
constexpr std::size_t small_bytes = 1024;
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;  // smaller ones wait for each other more often
constexpr std::size_t block_bytes = 8192;                  // a block's sum is still in the nearest cache when copied
constexpr std::size_t mpi_bytes = std::size_t{2} << 20;    // in larger calls Open MPI slows down
/// Looks at a peer's turn before others may have the core: some microseconds.
constexpr int patience = 2000;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

// A rank's part of the window.
//
// Only the rank itself raises its turn, which starts at 0, and after that waits until those of all others are as high.
// What a rank read or wrote before it raised its turn to t has happened for those that have seen it (release, acquire).
//  - A small message has one turn t: written to half t % 2 of one's own slot before it, read by all before they raise
//    t + 1. That half is next written for turn t + 2 at the earliest, after t + 1 of all was seen. With a single half
//    the fast would write for t + 1 what the slow still read of t.
//  - A large one has two, t and t + 1: between them, and only then, others read and write this rank's values.
struct HostGroup::Slot {
  alignas(cache_line) std::atomic<std::uint64_t> turn{0};
  alignas(cache_line) std::byte halves[2][small_bytes];
  std::byte chunk[chunk_bytes];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "a lock would be another process's");

/// What to reduce, in bytes. Those of this host's rank r are at first + r · stride.
struct HostGroup::Job {
  std::byte* first;
  std::size_t stride;
  std::size_t bytes;
  ElementType type;
  Reduction reduction;
};

HostGroup::HostGroup(const World& world, int part)
    : world_(world), part_(part), window_(world, sizeof(Slot) * static_cast<std::size_t>(world.local_size()), part) {
  is_shared_ = shared_by_all(window_, true);
  if (!is_shared_) return;
  const auto holders = all_gather(world, std::int64_t{window_.holder()});
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::int64_t holder = holders[static_cast<std::size_t>(rank)];
    const int ranks = static_cast<int>(std::count(holders.begin(), holders.end(), holder));
    workers_ = rank == 0 ? ranks : std::min(workers_, ranks);
    hosts_ += holder == rank ? 1 : 0;
    if (rank == world.rank()) rank_ = size_;
    size_ += holder == window_.holder() ? 1 : 0;
  }
  if (hosts_ > 1) {
    const int color = rank_ < workers_ ? rank_ : MPI_UNDEFINED;
    check_mpi(MPI_Comm_split(world.comm(), color, world.rank(), &across_), "join the hosts");
    if (across_ != MPI_COMM_NULL)
      check_mpi(MPI_Comm_set_errhandler(across_, MPI_ERRORS_RETURN), "set the error handler");
  }
  new (&slot(rank_)) Slot;
  check_mpi(MPI_Barrier(world.comm()), "wait for all ranks");
}

void HostGroup::close() {
  if (across_ != MPI_COMM_NULL) check_mpi(MPI_Comm_free(&across_), "leave the other hosts");
}

/// Collective. Whether any host has several ranks and all such share the window, and all is well `here` on all ranks.
bool HostGroup::shared_by_all(const SharedMemory& window, bool here) const {
  std::array<std::int64_t, 2> counts{window.is_shared() ? 1 : 0, window.why_not_shared().empty() && here ? 0 : 1};
  all_reduce_sum(world_, counts);
  return counts[0] > 0 && counts[1] == 0;
}

void* HostGroup::share(void* memory, std::size_t bytes) {
  const std::size_t stride = round_up(bytes, page_bytes());
  const bool fits = reinterpret_cast<std::uintptr_t>(memory) % page_bytes() == 0;
  SharedMemory window(world_, stride * static_cast<std::size_t>(world_.local_size()), part_);
  if (!shared_by_all(window, fits)) return nullptr;
  bool done = true;
  if (size_ > 1) {
    std::byte* own = window.data() + static_cast<std::size_t>(rank_) * stride;
    std::memcpy(own, memory, bytes);
    void* again = mremap(own, 0, stride, MREMAP_MAYMOVE);  // an old length of 0: the pages stay where they are, too
    done = again != MAP_FAILED && mremap(again, stride, stride, MREMAP_MAYMOVE | MREMAP_FIXED, memory) != MAP_FAILED;
  }
  Shared& shared = shared_.emplace_back(Shared{static_cast<std::byte*>(memory), bytes, stride, std::move(window)});
  if (shared_by_all(shared.window, done)) return &shared;
  withdraw(&shared);
  return nullptr;
}

void HostGroup::withdraw(void* shared) noexcept {
  const auto found = std::find_if(shared_.begin(), shared_.end(), [&](const Shared& each) { return &each == shared; });
  if (found == shared_.end()) return;
  void* copy = mmap(nullptr, found->stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy != MAP_FAILED) {  // else the pages stay until the memory is released
    std::memcpy(copy, found->memory, found->bytes);
    (void)mremap(copy, found->stride, found->stride, MREMAP_MAYMOVE | MREMAP_FIXED, found->memory);
  }
  shared_.erase(found);
}

void HostGroup::all_reduce(void* values, std::size_t numel, ElementType type, Reduction reduction) {
  auto* at = static_cast<std::byte*>(values);
  std::size_t left = numel * bytes_of(type);
  if (left <= small_bytes && hosts_ == 1) return reduce_small({at, 0, left, type, reduction});
  for (const Shared& shared : shared_) {
    if (at < shared.memory || at + left > shared.memory + shared.bytes) continue;
    std::byte* first = size_ == 1 ? at : shared.window.data() + (at - shared.memory);
    return reduce_in_place({first, shared.stride, left, type, reduction});
  }
  while (left > 0) {
    const std::size_t bytes = std::min(left, chunk_bytes);
    std::memcpy(slot(rank_).chunk, at, bytes);
    reduce_in_place({slot(0).chunk, sizeof(Slot), bytes, type, reduction});
    std::memcpy(at, slot(rank_).chunk, bytes);
    at += bytes;
    left -= bytes;
  }
}

/// Every rank does the whole sum.
void HostGroup::reduce_small(const Job& job) {
  if (job.bytes == 0) return;
  const std::size_t half = (turn_ + 1) % 2;
  std::memcpy(slot(rank_).halves[half], job.first, job.bytes);
  raise_turn();
  wait_for_all();
  const std::byte* sum = slot(0).halves[half];
  for (int rank = 1; rank < size_; ++rank) {
    combine(job.first, sum, slot(rank).halves[half], job.bytes / bytes_of(job.type), job.type, job.reduction);
    sum = job.first;
  }
}

/// Each worker does the sum of its slice, and gives it to all.
void HostGroup::reduce_in_place(const Job& job) {
  raise_turn();
  wait_for_all();
  const auto workers = static_cast<std::size_t>(workers_), worker = static_cast<std::size_t>(rank_);
  const std::size_t slice = round_up((job.bytes + workers - 1) / workers, cache_line);
  const std::size_t end = rank_ < workers_ ? std::min(job.bytes, (worker + 1) * slice) : 0;
  const std::size_t block = hosts_ == 1 ? block_bytes : mpi_bytes;
  for (std::size_t at = worker * slice; at < end; at += block) {
    const std::size_t bytes = std::min(block, end - at), numel = bytes / bytes_of(job.type);
    const auto of = [&](int rank) { return job.first + static_cast<std::size_t>(rank) * job.stride + at; };
    for (int rank = 1; rank < size_; ++rank) combine(of(0), of(0), of(rank), numel, job.type, job.reduction);
    if (hosts_ > 1) {
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, of(0), static_cast<int>(numel), mpi_type(job.type),
                              operations_.of(job.type, job.reduction), across_),
                "reduce values over all hosts");
    }
    for (int rank = 1; rank < size_; ++rank) std::memcpy(of(rank), of(0), bytes);
  }
  raise_turn();
  wait_for_all();
}

HostGroup::Slot& HostGroup::slot(int rank) const noexcept {
  return reinterpret_cast<Slot*>(window_.data())[rank];
}

void HostGroup::raise_turn() noexcept {
  slot(rank_).turn.store(++turn_, std::memory_order_release);
}

void HostGroup::wait_for_all() const {
  for (int rank = 0; rank < size_; ++rank) {
    const std::atomic<std::uint64_t>& turn = slot(rank).turn;
    for (int looks = 0; turn.load(std::memory_order_acquire) < turn_; ++looks) {
      if (looks < patience) continue;
      sched_yield();
      // The peer may still be in an earlier collective of MPI's, whose messages move only while this rank is in MPI.
      int found = 0;
      check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_.comm(), &found, MPI_STATUS_IGNORE),
                "move the messages of earlier collectives");
    }
  }
}

}  // namespace ddp
