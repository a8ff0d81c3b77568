#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <memory>
#include <set>
#include <source_location>
#include <thread>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/device/cuda_check.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/launch/mpi_check.hpp>

namespace ddp {
namespace {

constexpr const char* remedy =
    "NCCL_DEBUG=INFO in the environment makes NCCL tell more; NCCL_SOCKET_IFNAME names the network interface by which "
    "all nodes reach each other";

ncclDataType_t nccl_type(ElementType type) {
  switch (type) {
    case ElementType::u8:
      return ncclUint8;
    case ElementType::i64:
      return ncclInt64;
    case ElementType::f16:
      return ncclFloat16;
    case ElementType::bf16:
      return ncclBfloat16;
    case ElementType::f32:
      return ncclFloat32;
    case ElementType::f64:
      return ncclFloat64;
  }
  fail("choose an NCCL type", "unknown element type");
}

ncclRedOp_t nccl_reduction(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return ncclSum;
    case Reduction::min:
      return ncclMin;
    case Reduction::max:
      return ncclMax;
  }
  fail("choose an NCCL operation", "unknown reduction");
}

/// `comm` may be null: NCCL then tells of the last error of any.
void check_nccl(ncclResult_t status, ncclComm_t comm, const std::string& attempt,
                std::source_location where = std::source_location::current()) {
  if (status == ncclSuccess) return;
  // The rank that failed knows the cause. It shall be heard before this one ends the job.
  if (status == ncclRemoteError) std::this_thread::sleep_for(std::chrono::seconds(1));
  std::string cause = ncclGetErrorString(status);
  if (const char* last = ncclGetLastError(comm); last != nullptr && *last != '\0') cause += fmt::format(": {}", last);
  if (const cudaError_t beneath = cudaPeekAtLastError(); beneath != cudaSuccess) {
    cause += fmt::format(" ({}: {})", cudaGetErrorName(beneath), cudaGetErrorString(beneath));
  }
  fail(attempt, cause, remedy, where);
}

/// Needs no peer, and so is right while an error unwinds.
struct AbortComm {
  void operator()(ncclComm_t comm) const noexcept { ncclCommAbort(comm); }
};

class NcclGroup final : public ProcessGroup {
 public:
  NcclGroup(const World& world, Device& device, Watchdog& watchdog, std::chrono::seconds timeout,
            const ncclUniqueId& id)
      : world_(world),
        rank_(world.rank()),
        size_(world.size()),
        device_(device),
        watchdog_(watchdog),
        timeout_(std::min<std::chrono::seconds>(timeout, longest_timeout)),
        stream_(static_cast<cudaStream_t>(device.native(Queue::communication))),
        flag_(device, 1) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // a blocking communicator waits for a lost peer for ever, and cannot be aborted meanwhile
    call("NCCL start-up", 0, [&](const char* what) {
      ncclComm_t raw = nullptr;
      const ncclResult_t status = ncclCommInitRankConfig(&raw, size_, id, rank_, &config);
      comm_.reset(raw);
      finish(status, what);
    });
    device.watch_waits(&watchdog);
  }

  ~NcclGroup() override { device_.watch_waits(nullptr); }

  [[nodiscard]] std::string_view backend() const noexcept override { return "nccl"; }
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }

  void barrier() override {
    call("barrier", 0, [&](const char* what) {
      finish(ncclAllReduce(flag_.data(), flag_.data(), 1, ncclUint8, ncclMax, comm_.get(), stream_), what);
      wait_for_queue(what);
    });
  }

  void* register_memory(void* memory, std::size_t bytes) override {
    const Watchdog::Watch watch(watchdog_, "registration of memory", bytes);
    void* registration = nullptr;
    const ncclResult_t status = ncclCommRegister(comm_.get(), memory, bytes, &registration);
    if (status == ncclSuccess) registrations_.insert(registration);
    // All ranks' or none's: NCCL leaves open what happens to a mixture. Without, collectives use NCCL's own buffers.
    const auto taken = ddp::all_gather(world_, std::int64_t{status == ncclSuccess});
    if (std::find(taken.begin(), taken.end(), 0) == taken.end()) return registration;
    deregister_memory(registration);
    return nullptr;
  }

  void deregister_memory(void* registration) noexcept override {
    if (registrations_.erase(registration) == 0 || !comm_) return;  // an aborted communicator has dropped it
    const Watchdog::Watch watch(watchdog_, "deregistration of memory", 0);
    (void)ncclCommDeregister(comm_.get(), registration);  // nothing that comes later depends on it
  }

  void close() override {
    const Watchdog::Watch watch(watchdog_, "leaving of NCCL", 0);
    call("NCCL shut-down", 0, [&](const char* what) {
      wait_for_queue(what);
      while (!registrations_.empty()) deregister_memory(*registrations_.begin());
      finish(ncclCommFinalize(comm_.get()), what);
    });
    check_nccl(ncclCommDestroy(comm_.release()), nullptr, "leave NCCL");
  }

 private:
  void all_reduce_bytes(void* values, std::size_t numel, ElementType type, Reduction reduction) override {
    if (numel == 0) return;
    call("all-reduce", numel * bytes_of(type), [&](const char* what) {
      finish(ncclAllReduce(values, values, numel, nccl_type(type), nccl_reduction(reduction), comm_.get(), stream_),
             what);
    });
  }

  void reduce_scatter_bytes(const void* all, void* own, std::size_t own_numel, ElementType type) override {
    if (own_numel == 0) return;
    call("reduce-scatter", own_numel * bytes_of(type), [&](const char* what) {
      finish(ncclReduceScatter(all, own, own_numel, nccl_type(type), ncclSum, comm_.get(), stream_), what);
    });
  }

  void all_gather_bytes(const void* own, void* all, std::size_t own_numel, ElementType type) override {
    if (own_numel == 0) return;
    call("all-gather", own_numel * bytes_of(type), [&](const char* what) {
      finish(ncclAllGather(own, all, own_numel, nccl_type(type), comm_.get(), stream_), what);
    });
  }

  void broadcast_bytes(void* values, std::size_t numel, ElementType type, int root) override {
    if (numel == 0) return;
    call("broadcast", numel * bytes_of(type), [&](const char* what) {
      finish(ncclBroadcast(values, values, numel, nccl_type(type), root, comm_.get(), stream_), what);
    });
  }

  /// Work that ends when the host is done with it (the first collectives make connections, and so wait for peers). When
  /// it fails the communicator is aborted at once: an operation that will never end holds its stream until then, and
  /// with it whatever waits for the stream, such as the release of memory while the error unwinds.
  template <class Work>
  void call(const char* what, std::size_t bytes, const Work& work) {
    const Watchdog::Watch watch(watchdog_, what, bytes);
    try {
      work(what);
    } catch (...) {
      comm_.reset();
      throw;
    }
  }

  void finish(ncclResult_t status, const char* what) {
    if (status == ncclInProgress) {
      poll(what, [&] {
        check_nccl(ncclCommGetAsyncError(comm_.get(), &status), comm_.get(), "ask NCCL how a call goes");
        return status != ncclInProgress;
      });
    }
    if (status != ncclSuccess)
      check_nccl(status, comm_.get(), fmt::format("complete the {} with {} ranks", what, size_));
  }

  /// As cudaStreamSynchronize, which a collective whose peer died never leaves.
  void wait_for_queue(const char* what) {
    poll(what, [&] {
      const cudaError_t done = cudaStreamQuery(stream_);
      if (done != cudaErrorNotReady) {
        check(done, "wait for the communication queue");
        return true;
      }
      (void)cudaGetLastError();  // "not ready" counts as an error there
      ncclResult_t status = ncclSuccess;
      check_nccl(ncclCommGetAsyncError(comm_.get(), &status), comm_.get(), "ask NCCL for errors");
      if (status != ncclInProgress) finish(status, what);
      return false;
    });
  }

  template <class Done>
  void poll(const char* what, Done&& done) const {
    using Clock = std::chrono::steady_clock;
    constexpr auto patience = std::chrono::milliseconds(1);  // most waits are shorter, and a sleep would prolong them
    for (const auto begin = Clock::now(); !done();) {
      const auto waited = Clock::now() - begin;
      if (waited > timeout_) {
        throw Error(
            Status::timed_out,
            fmt::format(
                "could not complete the {} with {} ranks: not done after {} s (--timeout); a peer died, hangs, calls "
                "another collective, or cannot be reached: look for other ranks' messages; {}",
                what, size_, timeout_.count(), remedy));
      }
      if (waited > patience)
        std::this_thread::sleep_for(patience / 10);
      else
        std::this_thread::yield();
    }
  }

  const World& world_;
  int rank_, size_;
  Device& device_;
  Watchdog& watchdog_;
  std::chrono::seconds timeout_;
  cudaStream_t stream_;
  Buffer<std::uint8_t> flag_;  // any value will do
  std::unique_ptr<std::remove_pointer_t<ncclComm_t>, AbortComm> comm_;
  std::set<void*> registrations_;
};

}  // namespace

std::unique_ptr<ProcessGroup> make_nccl_group(const World& world, Device& device, Watchdog& watchdog,
                                              std::chrono::seconds timeout) {
  ncclUniqueId id = agree(world, [&] {
    if (device.kind() != "cuda") throw UseError("NCCL needs GPUs: use --backend mpi with --device cpu");
    ncclUniqueId own{};
    if (world.rank() == 0) check_nccl(ncclGetUniqueId(&own), nullptr, "make NCCL's id of this job");
    return own;
  });
  check_mpi(MPI_Bcast(id.internal, sizeof(id.internal), MPI_CHAR, 0, world.comm()), "send NCCL's id to all ranks");
  return std::make_unique<NcclGroup>(world, device, watchdog, timeout, id);
}

std::string nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), nullptr, "ask for NCCL's version");
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace ddp
