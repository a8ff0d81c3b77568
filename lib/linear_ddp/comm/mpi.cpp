#include <mpi.h>

#include <algorithm>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/launch/mpi_check.hpp>
#include "linear_ddp/comm/host_group.hpp"
#include "linear_ddp/comm/mpi_types.hpp"

namespace ddp {
namespace {

/// Open MPI's all-reduce of 100 MB in one call was seen to take 15 times as long as in pieces of 1 to 4 MB.
constexpr std::size_t piece_bytes = std::size_t{2} << 20;

class MpiGroup final : public ProcessGroup {
 public:
  MpiGroup(const World& world, Watchdog& watchdog, int part)
      : watchdog_(watchdog), host_(world, part), rank_(world.rank()), size_(world.size()) {
    check_mpi(MPI_Comm_dup(world.comm(), &comm_), "make the process group's communicator");
    check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "set the error handler");
  }

  std::string_view backend() const noexcept override { return "mpi"; }
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }

  void* register_memory(void* memory, std::size_t bytes) override {
    const Watchdog::Watch watch(watchdog_, "sharing of memory", bytes);
    return host_.is_shared() && bytes > 0 ? host_.share(memory, bytes) : nullptr;
  }
  void deregister_memory(void* registration) noexcept override { host_.withdraw(registration); }

  void barrier() override {
    const Watchdog::Watch watch(watchdog_, "barrier", 0);
    check_mpi(MPI_Barrier(comm_), "wait for all ranks");
  }

  // Freeing is collective, so a group destroyed while an error unwinds leaves its communicator to the end of the
  // process.
  void close() override {
    const Watchdog::Watch watch(watchdog_, "leaving of the process group", 0);
    host_.close();
    check_mpi(MPI_Comm_free(&comm_), "leave the process group");
  }

 private:
  void all_reduce_bytes(void* values, std::size_t numel, ElementType type, Reduction reduction) override {
    if (size_ == 1) return;
    if (host_.is_shared()) {
      const Watchdog::Watch watch(watchdog_, "all-reduce", numel * bytes_of(type));
      return host_.all_reduce(values, numel, type, reduction);
    }
    const MPI_Datatype datatype = mpi_type(type);
    const MPI_Op operation = operations_.of(type, reduction);
    in_pieces("all-reduce", values, numel, bytes_of(type), [&](void* piece, int count) {
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, piece, count, datatype, operation, comm_), "reduce values over all ranks");
    });
  }

  void broadcast_bytes(void* values, std::size_t numel, ElementType type, int root) override {
    const MPI_Datatype datatype = mpi_type(type);
    in_pieces("broadcast", values, numel, bytes_of(type), [&](void* piece, int count) {
      check_mpi(MPI_Bcast(piece, count, datatype, root, comm_), "broadcast values to all ranks");
    });
  }

  void reduce_scatter_bytes(const void* all, void* own, std::size_t own_numel, ElementType type) override {
    const int count = narrow<int>(own_numel, "the number of values");
    const Watchdog::Watch watch(watchdog_, "reduce-scatter", own_numel * bytes_of(type));
    check_mpi(MPI_Reduce_scatter_block(all, own, count, mpi_type(type), MPI_SUM, comm_),
              "reduce and scatter values over all ranks");
  }

  void all_gather_bytes(const void* own, void* all, std::size_t own_numel, ElementType type) override {
    const int count = narrow<int>(own_numel, "the number of values");
    const Watchdog::Watch watch(watchdog_, "all-gather", own_numel * bytes_of(type));
    // What is in its place already may not be given as another buffer.
    const bool in_place =
        own == static_cast<std::byte*>(all) + static_cast<std::size_t>(rank_) * own_numel * bytes_of(type);
    check_mpi(MPI_Allgather(in_place ? MPI_IN_PLACE : own, count, mpi_type(type), all, count, mpi_type(type), comm_),
              "gather values from all ranks");
  }

  template <class Call>
  void in_pieces(const char* what, void* values, std::size_t numel, std::size_t bytes, const Call& call) {
    const Watchdog::Watch watch(watchdog_, what, numel * bytes);
    const std::size_t piece = piece_bytes / bytes;
    for (std::size_t at = 0; at < numel; at += piece) {
      call(static_cast<std::byte*>(values) + at * bytes, static_cast<int>(std::min(piece, numel - at)));
    }
  }

  Watchdog& watchdog_;
  HostGroup host_;
  int rank_, size_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MpiOperations operations_;
};

}  // namespace

std::unique_ptr<ProcessGroup> make_mpi_group(const World& world, Watchdog& watchdog, int part) {
  return std::make_unique<MpiGroup>(world, watchdog, part);
}

}  // namespace ddp
