#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "fake_nccl_channel.hpp"

namespace fakegpu {

/// Keeps the text for ncclGetLastError, and returns `code`.
ncclResult_t nccl_error(ncclResult_t code, const std::string& text);
const char* last_nccl_error();

/// One rank's communicator. Its calls come from one thread; its operations run on the workers of streams.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  Communicator(std::string name, int rank, int ranks, bool blocking);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }

  /// Whether another call may be made now: not before ncclCommGetAsyncError has told the end of the one before.
  ncclResult_t ready(const char* call) const;

  ncclResult_t join();

  /// Queues operations in one call; with LINEAR_DDP_FAKE_NCCL_IN_PROGRESS not before some polls, as a thread of the
  /// real library does it later.
  ncclResult_t start(std::vector<std::function<ncclResult_t()>> works);
  ncclResult_t queue(const char* call, Operation operation, const void* send, void* receive, cudaStream_t stream);

  /// ncclInProgress, or how the last call went.
  ncclResult_t poll();

  ncclResult_t finalize();
  /// After it nothing of this communicator touches memory. The peers of an aborted one learn of it.
  void close(bool aborted);
  /// Finalizes what was not yet, and waits for that.
  void destroy();

  std::atomic<int> registrations = 0;  ///< of memory; what is left of them ends with an aborted communicator

 private:
  using Work = std::function<void(Channel&)>;
  void run(const Work& work);
  void run_in_background(const Work& work);
  ncclResult_t wait_until_idle() const;

  std::string name_;
  int rank_, ranks_;
  bool blocking_;
  std::string device_, host_;
  std::atomic<bool> abort_ = false;
  std::atomic<ncclResult_t> error_ = ncclSuccess;
  std::atomic<bool> busy_ = false;  ///< joining or finalizing
  bool finalized_ = false;
  int polls_left_ = 0, calls_ = 0;
  std::vector<std::function<ncclResult_t()>> later_;
  std::mutex running_;
  std::unique_ptr<Channel> channel_;  ///< under running_
  bool has_stream_ = false;
  cudaStream_t stream_ = nullptr;
};

}  // namespace fakegpu
