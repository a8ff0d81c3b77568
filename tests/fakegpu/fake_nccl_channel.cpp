#include "fake_nccl_channel.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>

namespace fakegpu {
namespace {

using namespace std::chrono_literals;

constexpr const char* prefix = "fakenccl-";  // then the process that made the name, and a random number

constexpr std::size_t slot_bytes = 4096;
static_assert(sizeof(Channel::Slot) <= slot_bytes && std::atomic<std::uint64_t>::is_always_lock_free);
constexpr std::size_t rank_bytes = slot_bytes + Channel::window_bytes;

void remove_stale_files() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix)) continue;
    const pid_t maker = std::atoi(name.c_str() + std::strlen(prefix));
    if (maker > 0 && kill(maker, 0) != 0 && errno == ESRCH) shm_unlink(("/" + name).c_str());
  }
}

[[noreturn]] void fail_system(const std::string& attempt) {
  throw Failure(ncclSystemError, "could not " + attempt + ": " + std::strerror(errno));
}

/// A lock on the rank's byte of the file. It belongs to the open file, and so ends with the process, however that ends.
struct flock lock_of(int rank) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

std::string Channel::new_name() {
  remove_stale_files();
  return prefix + std::to_string(getpid()) + "-" + std::to_string(std::random_device{}());
}

Channel::Channel(std::string name, int rank, int ranks, const std::atomic<bool>& abort)
    : name_("/" + std::move(name)), rank_(rank), ranks_(ranks), abort_(abort) {
  file_ = shm_open(name_.c_str(), O_CREAT | O_RDWR, 0600);
  if (file_ < 0) fail_system("open shared memory " + name_);
  try {
    if (ftruncate(file_, static_cast<off_t>(rank_bytes * max_ranks)) != 0) fail_system("size shared memory " + name_);
    // Without this a full /dev/shm would end the process by SIGBUS at the first write.
    errno = posix_fallocate(file_, static_cast<off_t>(rank_bytes) * rank_, static_cast<off_t>(rank_bytes));
    if (errno != 0) fail_system("reserve shared memory (see df /dev/shm)");
    struct flock lock = lock_of(rank_);
    if (fcntl(file_, F_OFD_SETLK, &lock) != 0) {
      throw Failure(ncclInvalidArgument, "rank " + std::to_string(rank_) + " has already joined this communicator");
    }
    void* memory =
        mmap(nullptr, rank_bytes * static_cast<std::size_t>(ranks_), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) fail_system("map shared memory " + name_);
    memory_ = static_cast<char*>(memory);
  } catch (...) {
    close(file_);
    throw;
  }
}

Channel::~Channel() {
  if (rank_ == 0 && meetings_ == 0) shm_unlink(name_.c_str());
  munmap(memory_, rank_bytes * static_cast<std::size_t>(ranks_));
  close(file_);
}

Channel::Slot& Channel::slot(int rank) const {
  return *reinterpret_cast<Slot*>(memory_ + rank_bytes * static_cast<std::size_t>(rank));
}

char* Channel::window(int rank) const {
  return memory_ + rank_bytes * static_cast<std::size_t>(rank) + slot_bytes;
}

void Channel::meet() {
  own_slot().meetings = meetings_ + 1;
  for (int rank = 0; rank < ranks_; ++rank) wait_for(rank, meetings_ + 1);
  if (++meetings_ == 1 && rank_ == 0) shm_unlink(name_.c_str());  // all have joined: nobody needs the name any more
}

bool Channel::is_alive(int rank) const {
  struct flock lock = lock_of(rank);
  return fcntl(file_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void Channel::wait_for(int rank, std::uint64_t meeting) const {
  const Slot& peer = slot(rank);
  const auto has_come = [&] { return peer.meetings >= meeting; };
  for (int turn = 0; !has_come(); ++turn) {
    if (abort_) throw Aborted();
    if (turn < 100) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(50us);
    if (turn % 20 != 0 || peer.meetings == 0) continue;  // a rank that has not joined yet may still come
    const bool aborted = peer.aborted, alive = is_alive(rank);
    if ((!aborted && alive) || has_come()) continue;
    throw Failure(ncclRemoteError,
                  "rank " + std::to_string(rank) + (aborted ? " aborted its communicator" : " has ended"));
  }
}

}  // namespace fakegpu
