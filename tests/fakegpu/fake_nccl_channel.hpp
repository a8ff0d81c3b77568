#pragma once

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace fakegpu {

/// What a rank asks of a communicator; all ranks must ask the same.
struct Operation {
  enum class Kind { join, all_reduce, reduce_scatter, all_gather, broadcast, finalize } kind = Kind::join;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t reduction = ncclSum;  ///< of all_reduce and reduce_scatter
  int root = 0;                     ///< of broadcast
  bool captured = false;            ///< whether it is part of a graph, which must be so on all ranks or none

  bool operator==(const Operation&) const = default;
};

/// An error of the communicator, as ncclCommGetAsyncError reports it.
struct Failure : std::runtime_error {
  Failure(ncclResult_t code_, const std::string& text) : std::runtime_error(text), code(code_) {}
  ncclResult_t code;
};

/// This rank's communicator was aborted: leave what waits for peers.
struct Aborted {};

/// The shared memory of one communicator's ranks, which are processes of one host: a slot and a window of data each.
class Channel {
 public:
  static constexpr int max_ranks = 64;
  static constexpr std::size_t window_bytes = std::size_t{1} << 20;

  /// What the others see of a rank. Each rank writes its own slot only.
  struct Slot {
    std::atomic<std::uint64_t> meetings;  ///< that it has come to
    std::atomic<bool> aborted;
    int ranks;  ///< of the communicator, as it was told
    char device[64], host[64];
    Operation operation;
  };

  /// A name for a communicator that does not exist yet. Removes what dead jobs left behind.
  static std::string new_name();

  /// Waits for nobody. `abort` is looked at in every wait.
  Channel(std::string name, int rank, int ranks, const std::atomic<bool>& abort);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Comes back when all ranks have come; what each wrote before is then there for all. Throws Aborted, or Failure when
  /// a rank will never come.
  void meet();

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] Slot& slot(int rank) const;
  [[nodiscard]] char* window(int rank) const;
  Slot& own_slot() { return slot(rank_); }
  char* own_window() { return window(rank_); }

 private:
  [[nodiscard]] bool is_alive(int rank) const;
  void wait_for(int rank, std::uint64_t meeting) const;

  std::string name_;
  int rank_, ranks_;
  const std::atomic<bool>& abort_;
  int file_ = -1;
  char* memory_ = nullptr;
  std::uint64_t meetings_ = 0;
};

}  // namespace fakegpu
