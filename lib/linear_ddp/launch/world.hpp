#pragma once

#include <mpi.h>

#include <string>

namespace ddp {

/// The MPI job as this rank sees it. Movable and copyable by nobody: one World a rank, passed on by reference.
///
/// To destroy it is collective. An Error that is no AgreedError is this rank's alone, and its peers wait: let it end in
/// MPI_Abort before the World is destroyed, or this rank waits too.
class World {
 public:
  /// Initialises MPI and, when destroyed, finalises it.
  ///
  /// The thread level is MPI_THREAD_FUNNELED: only the thread that made the World calls MPI. (MULTIPLE would cost 6 %
  /// of a small all-reduce.) Throws UseError when this process is a world of one though its launcher announced more: N
  /// such processes would each believe to be rank 0 and write the same files.
  World();

  /// Joins the ranks of a communicator the caller owns (collective; the communicator is duplicated). MPI must be
  /// initialised, and stays so when this World is destroyed.
  explicit World(MPI_Comm parent);

  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  /// Rank among, and number of, the ranks that share this host's memory.
  [[nodiscard]] int local_rank() const noexcept { return local_rank_; }
  [[nodiscard]] int local_size() const noexcept { return local_size_; }
  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  /// Private to linear_ddp; errors are returned, not fatal.
  [[nodiscard]] MPI_Comm comm() const noexcept { return comm_; }
  /// "rank 3 on node7: " when more than one rank runs, else "".
  [[nodiscard]] std::string prefix() const;

 private:
  /// An object that a delegating constructor has made is destroyed when the rest of the constructor throws.
  struct Nothing {};
  explicit World(Nothing) noexcept {}
  void join(MPI_Comm parent);

  bool owns_mpi_ = false;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  std::string host_;
};

/// The name and value of the environment variable by which a launcher announced more tasks than `world_size`, which is
/// 1; empty when none did. Variables of the whole job (SLURM_NTASKS in an salloc shell) prove nothing.
[[nodiscard]] std::string launcher_mismatch(int world_size);

}  // namespace ddp
