#include <mpi.h>

#include <algorithm>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/launch/mpi_check.hpp>
#include "kernels/half.hpp"

namespace ddp {
namespace {

/// Open MPI's all-reduce of 100 MB in one call was seen to take 15 times as long as in pieces of 1 to 4 MB.
constexpr std::size_t piece_bytes = std::size_t{2} << 20;

MPI_Datatype mpi_type(ElementType type) {
  switch (type) {
    case ElementType::u8:
      return MPI_UINT8_T;
    case ElementType::i64:
      return MPI_INT64_T;
    case ElementType::f16:
    case ElementType::bf16:
      return MPI_UINT16_T;
    case ElementType::f32:
      return MPI_FLOAT;
    case ElementType::f64:
      return MPI_DOUBLE;
  }
  fail("choose an MPI type", "unknown element type");
}

MPI_Op mpi_operation(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return MPI_SUM;
    case Reduction::min:
      return MPI_MIN;
    case Reduction::max:
      return MPI_MAX;
  }
  fail("choose an MPI operation", "unknown reduction");
}

/// MPI has no numbers of 16 bits, so their sum is an operation of our own.
template <class Half>
void add_halves(void* from, void* to, int* numel, MPI_Datatype*) {
  const auto* addends = static_cast<const std::uint16_t*>(from);
  auto* sums = static_cast<std::uint16_t*>(to);
  for (int i = 0; i < *numel; ++i) {
    sums[i] = Half::from_float(Half::to_float(sums[i]) + Half::to_float(addends[i]));
  }
}

class HalfSum {
 public:
  explicit HalfSum(MPI_User_function* add) {
    check_mpi(MPI_Op_create(add, 1, &operation_), "make a sum of numbers of 16 bits");
  }
  // A group is destroyed while MPI is there.
  ~HalfSum() { MPI_Op_free(&operation_); }
  HalfSum(const HalfSum&) = delete;
  HalfSum& operator=(const HalfSum&) = delete;
  [[nodiscard]] MPI_Op get() const noexcept { return operation_; }

 private:
  MPI_Op operation_ = MPI_OP_NULL;
};

class MpiGroup final : public ProcessGroup {
 public:
  MpiGroup(const World& world, Watchdog& watchdog) : watchdog_(watchdog), rank_(world.rank()), size_(world.size()) {
    check_mpi(MPI_Comm_dup(world.comm(), &comm_), "make the process group's communicator");
    check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "set the error handler");
  }

  std::string_view backend() const noexcept override { return "mpi"; }
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }

  void* register_memory(void*, std::size_t) override { return nullptr; }
  void deregister_memory(void*) noexcept override {}

  void barrier() override {
    const Watchdog::Watch watch(watchdog_, "barrier", 0);
    check_mpi(MPI_Barrier(comm_), "wait for all ranks");
  }

  // Freeing is collective, so a group destroyed while an error unwinds leaves its communicator to the end of the
  // process.
  void close() override {
    const Watchdog::Watch watch(watchdog_, "leaving of the process group", 0);
    check_mpi(MPI_Comm_free(&comm_), "leave the process group");
  }

 private:
  void all_reduce_bytes(void* values, std::size_t numel, ElementType type, Reduction reduction) override {
    if (size_ == 1) return;
    const MPI_Datatype datatype = mpi_type(type);
    const MPI_Op operation = type == ElementType::f16    ? fp16_sum_.get()
                             : type == ElementType::bf16 ? bf16_sum_.get()
                                                         : mpi_operation(reduction);
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
  int rank_, size_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  HalfSum fp16_sum_{add_halves<kernels::Fp16>}, bf16_sum_{add_halves<kernels::Bf16>};
};

}  // namespace

std::unique_ptr<ProcessGroup> make_mpi_group(const World& world, Watchdog& watchdog) {
  return std::make_unique<MpiGroup>(world, watchdog);
}

}  // namespace ddp
