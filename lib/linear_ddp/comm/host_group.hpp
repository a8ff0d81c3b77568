#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <list>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/launch/shared_array.hpp>
#include <linear_ddp/launch/world.hpp>
#include "linear_ddp/comm/mpi_types.hpp"

namespace ddp {

/// All-reduce in which the ranks of a host meet in memory they share, and the hosts by MPI.
class HostGroup {
 public:
  /// Collective. `part` divides a host's ranks further, as for hosts of their own. The world outlives the group. Throws
  /// AgreedError when there is no memory at all.
  HostGroup(const World& world, int part);

  /// The same on all ranks. False where no host has several ranks, and where one has several but no memory to share:
  /// then only close() may be called.
  [[nodiscard]] bool is_shared() const noexcept { return is_shared_; }

  /// Collective, in place; every rank gets the same bits. The values of a host are combined in rank order, those of the
  /// hosts as MPI_Allreduce does.
  void all_reduce(void* values, std::size_t numel, ElementType type, Reduction reduction);

  /// Collective. Lets the ranks of a host reach each other's memory, whole pages, whose values stay, so that all_reduce
  /// need not copy them. Returns what to give to withdraw; null when it could not be. All ranks then reduce the same
  /// part of it at a time.
  [[nodiscard]] void* share(void* memory, std::size_t bytes);
  /// For this rank alone: the memory is as before it was shared, the values stay.
  void withdraw(void* shared) noexcept;

  /// Collective, once, after the last operation.
  void close();

 private:
  struct Slot;
  struct Job;
  struct Shared {
    std::byte* memory;
    std::size_t bytes;
    std::size_t stride;   ///< bytes in whole pages
    SharedMemory window;  ///< the same pages, and those of the host's other ranks, a stride for each
  };
  [[nodiscard]] bool shared_by_all(const SharedMemory& window, bool here) const;
  [[nodiscard]] Slot& slot(int rank) const noexcept;
  void reduce_small(const Job& job);
  void reduce_in_place(const Job& job);
  void raise_turn() noexcept;
  void wait_for_all() const;

  const World& world_;
  const int part_;
  MpiOperations operations_;
  MPI_Comm across_ = MPI_COMM_NULL;  ///< this worker and its fellows on the other hosts, if there are any
  SharedMemory window_;              ///< a slot for each rank of this host
  std::list<Shared> shared_;
  bool is_shared_ = false;
  int hosts_ = 0;
  int rank_ = 0, size_ = 0;  ///< rank among, and number of, the ranks of this host
  int workers_ = 0;          ///< the first ranks of each host do the sums, as many as the smallest host has
  std::uint64_t turn_ = 0;
};

}  // namespace ddp
