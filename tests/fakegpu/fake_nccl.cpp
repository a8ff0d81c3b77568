// Stand-in for libnccl.so.2: collectives among the processes of one host. Point-to-point calls, windows, splits and
// operations of one's own are not modelled and not exported: the dynamic linker names what is missing.
#include <nccl.h>

#include <functional>
#include <utility>
#include <vector>

#include "fake_nccl_collectives.hpp"
#include "fake_nccl_communicator.hpp"
#include "handles.hpp"

namespace fakegpu {
namespace {

using Kind = Operation::Kind;

auto& communicators() {
  static auto& all = *new Handles<ncclComm_t, Communicator>("NCCL communicator");
  return all;
}

ncclResult_t injected(const char* call) {
  const int error = fault(call);
  return error == 0 ? ncclSuccess : nccl_error(static_cast<ncclResult_t>(error), std::string(call) + ": asked to fail");
}

struct GroupCall {
  std::shared_ptr<Communicator> communicator;
  std::function<ncclResult_t()> work;
};
thread_local int group_depth = 0;
thread_local std::vector<GroupCall> group_calls;

/// In place is as NCCL defines it; any other overlap gives wrong values on a GPU, now and then.
void check_memory(const char* call, const Communicator& communicator, const Operation& operation, const void* send,
                  const void* receive) {
  const std::size_t part = operation.count * bytes_of(operation.type);
  const auto ranks = static_cast<std::size_t>(communicator.ranks()),
             rank = static_cast<std::size_t>(communicator.rank());
  const std::size_t send_bytes = operation.kind == Kind::reduce_scatter ? part * ranks : part;
  const std::size_t receive_bytes = operation.kind == Kind::all_gather ? part * ranks : part;
  const bool reads = operation.kind != Kind::broadcast || communicator.rank() == operation.root;
  if (part == 0) return;
  if ((reads && !is_device_range(send, send_bytes)) || !is_device_range(receive, receive_bytes)) {
    die(std::string(call) + ": a buffer is not inside one allocation of device memory");
  }
  auto from = reinterpret_cast<std::uintptr_t>(send), to = reinterpret_cast<std::uintptr_t>(receive);
  const bool overlap = from < to + receive_bytes && to < from + send_bytes;
  if (operation.kind == Kind::all_gather) to += rank * part;
  if (operation.kind == Kind::reduce_scatter) from += rank * part;
  if (reads && overlap && from != to) die(std::string(call) + ": the buffers overlap, and are not in place");
}

ncclResult_t collective(const char* call, ncclComm_t handle, const Operation& operation, const void* send,
                        void* receive, cudaStream_t stream) {
  if (const auto result = injected(call); result != ncclSuccess) return result;
  if (handle == nullptr) return nccl_error(ncclInvalidArgument, std::string(call) + ": no communicator");
  const auto communicator = communicators().get(handle, call);
  if (const auto result = communicator->ready(call); result != ncclSuccess) return result;
  const auto refuse = [&](const char* why) { return nccl_error(ncclInvalidArgument, std::string(call) + ": " + why); };
  if (bytes_of(operation.type) == 0) return refuse("this type is not modelled");
  if (operation.reduction < ncclSum || operation.reduction > ncclAvg) return refuse("this reduction is not modelled");
  if (operation.root < 0 || operation.root >= communicator->ranks()) return refuse("no such root");
  check_memory(call, *communicator, operation, send, receive);
  const auto work = [=] { return communicator->queue(call, operation, send, receive, stream); };
  if (group_depth == 0) return communicator->start({work});
  group_calls.push_back({communicator, work});
  return ncclSuccess;
}

}  // namespace
}  // namespace fakegpu

using namespace fakegpu;

#define FAIL_IF_ASKED_TO \
  if (const ncclResult_t asked = injected(__func__); asked != ncclSuccess) return asked

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  FAIL_IF_ASKED_TO;
  *version = 22809;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t code) {
  static constexpr const char* texts[] = {"no error",
                                          "unhandled cuda error",
                                          "unhandled system error",
                                          "internal error",
                                          "invalid argument",
                                          "invalid usage",
                                          "remote process exited or there was a network error",
                                          "NCCL operation in progress"};
  return code >= 0 && code < ncclNumResults ? texts[code] : "unknown result code";
}

const char* ncclGetLastError(ncclComm_t) {
  return last_nccl_error();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  FAIL_IF_ASKED_TO;
  *id = {};
  Channel::new_name().copy(id->internal, sizeof(id->internal) - 1);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  *handle = nullptr;
  FAIL_IF_ASKED_TO;
  if (group_depth != 0) die("ncclCommInitRankConfig: not modelled inside a group");
  if (ranks < 1 || ranks > Channel::max_ranks || rank < 0 || rank >= ranks) {
    return nccl_error(ncclInvalidArgument, "ncclCommInitRankConfig: rank " + std::to_string(rank) + " of " +
                                               std::to_string(ranks) + " (at most " +
                                               std::to_string(Channel::max_ranks) + " are modelled)");
  }
  if (config != nullptr && config->magic != 0xcafebeef) {
    return nccl_error(ncclInvalidArgument, "ncclCommInitRankConfig: begin with NCCL_CONFIG_INITIALIZER");
  }
  const bool blocking = config == nullptr || config->blocking != 0;
  const auto communicator = std::make_shared<Communicator>(id.internal, rank, ranks, blocking);
  *handle = communicators().add(communicator);
  const ncclResult_t result = communicator->join();
  if (result != ncclSuccess && result != ncclInProgress) ncclCommAbort(std::exchange(*handle, nullptr));
  return result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  FAIL_IF_ASKED_TO;
  *error = communicators().get(handle, __func__)->poll();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  FAIL_IF_ASKED_TO;
  const auto communicator = communicators().get(handle, __func__);
  if (const auto result = communicator->ready(__func__); result != ncclSuccess) return result;
  return communicator->finalize();
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  FAIL_IF_ASKED_TO;
  if (handle != nullptr) communicators().take(handle, __func__)->destroy();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  FAIL_IF_ASKED_TO;
  if (handle != nullptr) communicators().take(handle, __func__)->close(true);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  FAIL_IF_ASKED_TO;
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  FAIL_IF_ASKED_TO;
  if (group_depth == 0) return nccl_error(ncclInvalidUsage, "ncclGroupEnd: not in a group call");
  if (--group_depth > 0) return ncclSuccess;
  auto calls = std::exchange(group_calls, {});
  ncclResult_t result = ncclSuccess;
  while (!calls.empty()) {
    const auto communicator = calls.front().communicator;
    std::vector<std::function<ncclResult_t()>> works;
    std::erase_if(calls, [&](const GroupCall& call) {
      if (call.communicator == communicator) works.push_back(call.work);
      return call.communicator == communicator;
    });
    if (const auto started = communicator->start(std::move(works)); started != ncclSuccess) result = started;
  }
  return result;
}

ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes) {
  FAIL_IF_ASKED_TO;
  return cudaMalloc(memory, bytes) == cudaSuccess ? ncclSuccess : nccl_error(ncclUnhandledCudaError, "ncclMemAlloc");
}

ncclResult_t ncclMemFree(void* memory) {
  FAIL_IF_ASKED_TO;
  return cudaFree(memory) == cudaSuccess ? ncclSuccess : nccl_error(ncclUnhandledCudaError, "ncclMemFree");
}

ncclResult_t ncclCommRegister(const ncclComm_t handle, void* buffer, std::size_t bytes, void** registration) {
  FAIL_IF_ASKED_TO;
  const auto communicator = communicators().get(handle, __func__);
  if (!is_device_range(buffer, bytes)) die("ncclCommRegister: not inside one allocation of device memory");
  count_object("NCCL registration", 1);
  ++communicator->registrations;
  *registration = buffer;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t handle, void*) {
  FAIL_IF_ASKED_TO;
  const auto communicator = communicators().get(handle, __func__);
  count_object("NCCL registration", -1);
  --communicator->registrations;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t handle, cudaStream_t stream) {
  return collective(__func__, handle, {Kind::all_reduce, count, type, reduction, 0}, send, receive, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t handle, cudaStream_t stream) {
  return collective(__func__, handle, {Kind::reduce_scatter, count, type, reduction, 0}, send, receive, stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type, ncclComm_t handle,
                           cudaStream_t stream) {
  return collective(__func__, handle, {Kind::all_gather, count, type, ncclSum, 0}, send, receive, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t handle, cudaStream_t stream) {
  return collective(__func__, handle, {Kind::broadcast, count, type, ncclSum, root}, send, receive, stream);
}

}  // extern "C"
