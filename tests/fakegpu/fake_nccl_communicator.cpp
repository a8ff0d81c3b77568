#include "fake_nccl_communicator.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "fake_nccl_collectives.hpp"
#include "fakegpu.hpp"

namespace fakegpu {
namespace {

using namespace std::chrono_literals;

/// As the real library: one text for all communicators.
struct LastError {
  std::mutex mutex;
  char text[1024] = "";
};
LastError& last_error() {
  static auto& error = *new LastError;
  return error;
}

std::string from_environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

void copy_text(const std::string& text, char (&to)[64]) {
  to[text.copy(to, sizeof(to) - 1)] = '\0';
}

void check_members(Channel& channel) {
  for (int rank = 0; rank < channel.ranks(); ++rank) {
    const auto& slot = channel.slot(rank);
    if (slot.ranks != channel.ranks()) {
      throw Failure(ncclInvalidArgument, "rank " + std::to_string(rank) + " was told of " + std::to_string(slot.ranks) +
                                             " ranks, another of " + std::to_string(channel.ranks()));
    }
    for (int before = 0; before < rank; ++before) {
      const auto& other = channel.slot(before);
      if (std::strcmp(slot.device, other.device) != 0 || std::strcmp(slot.host, other.host) != 0) continue;
      throw Failure(ncclInvalidUsage, "Duplicate GPU detected : rank " + std::to_string(before) + " and rank " +
                                          std::to_string(rank) + " both on CUDA device " + slot.device);
    }
  }
}

}  // namespace

ncclResult_t nccl_error(ncclResult_t code, const std::string& text) {
  auto& error = last_error();
  const std::lock_guard lock(error.mutex);
  error.text[text.copy(error.text, sizeof(error.text) - 1)] = '\0';
  return code;
}

const char* last_nccl_error() {
  return last_error().text;
}

Communicator::Communicator(std::string name, int rank, int ranks, bool blocking)
    : name_(std::move(name)),
      rank_(rank),
      ranks_(ranks),
      blocking_(blocking),
      device_(device_uuid(current_device())),
      host_(from_environment("NCCL_HOSTID")) {}

ncclResult_t Communicator::ready(const char* call) const {
  if (error_ != ncclSuccess) return error_;
  if (finalized_) return nccl_error(ncclInvalidUsage, std::string(call) + ": the communicator was finalized");
  if (!busy_ && polls_left_ == 0) return ncclSuccess;
  return nccl_error(ncclInvalidArgument,
                    std::string(call) + ": the call before is in progress: poll ncclCommGetAsyncError first");
}

ncclResult_t Communicator::join() {
  polls_left_ = blocking_ ? 0 : 3;
  run_in_background([this](Channel& channel) {
    auto& slot = channel.own_slot();
    slot.ranks = ranks_;
    copy_text(device_, slot.device);
    copy_text(host_, slot.host);
    channel.meet();
    check_members(channel);
  });
  return blocking_ ? wait_until_idle() : ncclInProgress;
}

ncclResult_t Communicator::start(std::vector<std::function<ncclResult_t()>> works) {
  later_ = std::move(works);
  if (!blocking_ && from_environment("LINEAR_DDP_FAKE_NCCL_IN_PROGRESS") == "1") {
    polls_left_ = 1 + calls_++ % 5;
    return ncclInProgress;
  }
  polls_left_ = 0;
  for (const auto& work : std::exchange(later_, {})) {
    if (const ncclResult_t result = work(); result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

ncclResult_t Communicator::queue(const char* call, Operation operation, const void* send, void* receive,
                                 cudaStream_t stream) {
  if (has_stream_ && stream != stream_) die(std::string(call) + ": one communicator on two streams is not modelled");
  has_stream_ = true;
  stream_ = stream;
  operation.captured = is_captured(stream);
  // The order among the ranks arises when it runs, not now: a captured operation runs once for each replay.
  const auto work = [self = shared_from_this(), operation, send, receive] {
    self->run([&](Channel& channel) { run_operation(channel, operation, real(send), real(receive)); });
  };
  const cudaError_t queued = enqueue(stream, call, work);
  if (queued == cudaSuccess) return ncclSuccess;
  return nccl_error(ncclUnhandledCudaError, std::string(call) + ": " + cudaGetErrorString(queued));
}

ncclResult_t Communicator::poll() {
  if (error_ != ncclSuccess) return error_;
  if (busy_) return ncclInProgress;
  if (polls_left_ == 0) return ncclSuccess;
  if (--polls_left_ == 0) {
    for (const auto& work : std::exchange(later_, {})) {
      if (const ncclResult_t result = work(); result != ncclSuccess) error_ = result;
    }
  }
  return ncclInProgress;
}

ncclResult_t Communicator::finalize() {
  finalized_ = true;
  const auto leave = [](Channel& channel) {
    run_operation(channel, {.kind = Operation::Kind::finalize}, nullptr, nullptr);
  };
  if (has_stream_) {
    busy_ = true;
    const auto work = [self = shared_from_this(), leave] {
      self->run(leave);
      self->busy_ = false;
    };
    if (enqueue(stream_, "ncclCommFinalize", work) != cudaSuccess) return ncclUnhandledCudaError;
  } else {
    run_in_background(leave);
  }
  return blocking_ ? wait_until_idle() : ncclInProgress;
}

void Communicator::close(bool aborted) {
  abort_ = true;
  const std::lock_guard lock(running_);
  later_.clear();
  if (aborted) count_object("NCCL registration", -registrations.exchange(0));
  if (channel_ && aborted) channel_->own_slot().aborted = true;
  channel_.reset();
}

void Communicator::destroy() {
  if (error_ == ncclSuccess && !finalized_) finalize();
  close(wait_until_idle() != ncclSuccess);
}

void Communicator::run(const Work& work) {
  const std::lock_guard lock(running_);
  try {
    if (abort_) return;
    if (error_ == ncclSuccess) {
      if (!channel_) channel_ = std::make_unique<Channel>(name_, rank_, ranks_, abort_);
      return work(*channel_);
    }
  } catch (const Failure& failure) {
    error_ = nccl_error(failure.code, failure.what());
  } catch (const Aborted&) {
  }
  // What comes later on the stream must not run on values that never arrived; the real library's kernels spin as well.
  while (!abort_) std::this_thread::sleep_for(1ms);
}

void Communicator::run_in_background(const Work& work) {
  busy_ = true;
  std::thread([self = shared_from_this(), work] {
    self->run(work);
    self->busy_ = false;
  }).detach();
}

ncclResult_t Communicator::wait_until_idle() const {
  while (busy_ && error_ == ncclSuccess) std::this_thread::sleep_for(100us);
  return error_;
}

}  // namespace fakegpu
