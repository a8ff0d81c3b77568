#include <linear_ddp/launch/shared_array.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/launch/mpi_check.hpp>

namespace ddp {
namespace {

class Communicator {
 public:
  explicit Communicator(MPI_Comm comm) : comm_(comm) {}
  ~Communicator() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  [[nodiscard]] MPI_Comm get() const noexcept { return comm_; }

 private:
  MPI_Comm comm_;
};

MPI_Comm split(MPI_Comm parent, int color, int rank) {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(parent, color, rank, &comm), "divide the ranks");
  if (comm != MPI_COMM_NULL) check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "set the error handler");
  return comm;
}

/// The ranks of this host, or of its part.
MPI_Comm split_host(const World& world, int part) {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(world.comm(), MPI_COMM_TYPE_SHARED, world.rank(), MPI_INFO_NULL, &comm),
            "find the ranks of this host");
  const Communicator host(comm);
  return split(host.get(), part, world.rank());
}

void broadcast_values(MPI_Comm comm, void* values, int count, MPI_Datatype type, int root) {
  check_mpi(MPI_Bcast(values, count, type, root, comm), "exchange data between hosts");
}

/// What one rank wrote before, all see after.
void publish(const World& world) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  check_mpi(MPI_Barrier(world.comm()), "wait for all ranks");
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace

/// Memory of the system's, which several processes may map. Not MPI_Win_allocate_shared's: in Open MPI 4.1 that hangs
/// when /dev/shm is too small, as in containers, and to free it is collective, which a destructor must not be.
class SharedMemory::Mapping {
 public:
  explicit Mapping(std::size_t bytes) : bytes_(bytes) {}
  ~Mapping() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// An error number, or 0.
  int create(const char* name) {
    return map(shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR),
               // What is only promised would end the process when it is first written to.
               [this](int file) { return posix_fallocate(file, 0, static_cast<off_t>(bytes_)); });
  }
  int open(const char* name) {
    return map(shm_open(name, O_RDWR | O_CLOEXEC, 0), [this](int file) {
      struct stat status {};
      if (fstat(file, &status) != 0) return errno;
      return static_cast<std::size_t>(status.st_size) == bytes_ ? 0 : ENOENT;  // another host's, of that name
    });
  }
  /// For this process alone. Huge pages: to bring them in takes as long as to fill them, else several times that.
  int create() {
    void* data = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return errno;
    data_ = data;
    (void)madvise(data_, bytes_, MADV_HUGEPAGE);  // where there are none, small ones do
    return 0;
  }
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }

 private:
  template <class Prepare>
  int map(int file, const Prepare& prepare) {
    if (file < 0) return errno;
    int error = prepare(file);
    if (error == 0) {
      void* data = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (data == MAP_FAILED)
        error = errno;
      else
        data_ = data;
    }
    close(file);
    return error;
  }

  std::size_t bytes_;
  void* data_ = nullptr;
};

SharedMemory::SharedMemory() = default;
SharedMemory::~SharedMemory() = default;
SharedMemory::SharedMemory(SharedMemory&&) noexcept = default;
SharedMemory& SharedMemory::operator=(SharedMemory&&) noexcept = default;

SharedMemory::SharedMemory(const World& world, std::size_t bytes, int part) : holder_(world.rank()) {
  if (world.size() > 1 && bytes > 0) share(world, bytes, part);
  is_shared_ = mapping_ != nullptr;
  agree(world, [&] {
    if (mapping_ || bytes == 0) return;
    mapping_ = std::make_unique<Mapping>(bytes);
    const int error = mapping_->create();
    if (error != 0)
      fail(fmt::format("get {} bytes of memory for the data", bytes), std::generic_category().message(error));
  });
}

void SharedMemory::share(const World& world, std::size_t bytes, int part) {
  const Communicator host(split_host(world, part));
  int ranks = 0;
  check_mpi(MPI_Comm_size(host.get(), &ranks), "ask for the number of ranks");
  if (ranks == 1) return;

  int holder = world.rank();
  broadcast_values(host.get(), &holder, 1, MPI_INT, 0);
  const bool is_holder = holder == world.rank();
  std::array<char, 64> name{};
  auto mapping = std::make_unique<Mapping>(bytes);
  int error = 0;
  if (is_holder) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    *fmt::format_to_n(name.begin(), name.size() - 1, "/linear_ddp.{}.{}", getpid(), now).out = '\0';
    error = mapping->create(name.data());
  }
  broadcast_values(host.get(), name.data(), static_cast<int>(name.size()), MPI_CHAR, 0);
  int worst = error;
  broadcast_values(host.get(), &worst, 1, MPI_INT, 0);
  if (!is_holder && worst == 0) error = mapping->open(name.data());
  check_mpi(MPI_Allreduce(&error, &worst, 1, MPI_INT, MPI_MAX, host.get()), "compare the host's shared memory");
  // From here on it lives as long as it is mapped, however the processes end.
  if (is_holder) shm_unlink(name.data());
  if (worst != 0) {
    why_not_shared_ = fmt::format("{} bytes in /dev/shm: {}", bytes, std::generic_category().message(worst));
    return;
  }
  mapping_ = std::move(mapping);
  holder_ = holder;
}

std::byte* SharedMemory::data() const noexcept {
  return mapping_ ? mapping_->data() : nullptr;
}

void SharedMemory::exchange(const World& world, const std::vector<Range>& own) {
  if (world.size() == 1) return;
  publish(world);
  const auto holders = all_gather(world, std::int64_t{holder_});
  const bool holds = holder_ == world.rank();
  const Communicator copies(split(world.comm(), holds ? 0 : MPI_UNDEFINED, world.rank()));
  const bool one_copy = std::all_of(holders.begin(), holders.end(), [](std::int64_t holder) { return holder == 0; });
  for (int rank = 0; rank < world.size() && !one_copy; ++rank) {
    // Those before it that hold a copy: its holder's rank among them.
    int root = 0;
    for (std::int64_t other = 0; other < holders[static_cast<std::size_t>(rank)]; ++other) {
      root += holders[static_cast<std::size_t>(other)] == other ? 1 : 0;
    }
    auto ranges = static_cast<std::int64_t>(own.size());
    broadcast_values(world.comm(), &ranges, 1, MPI_INT64_T, rank);
    for (std::int64_t i = 0; i < ranges; ++i) {
      Range range = rank == world.rank() ? own[static_cast<std::size_t>(i)] : Range{};
      broadcast_values(world.comm(), &range, 2, MPI_INT64_T, rank);
      if (holds) send(copies.get(), range, root);
    }
  }
  publish(world);
}

/// In pieces below the size where Open MPI slows down.
void SharedMemory::send(MPI_Comm copies, const Range& range, int root) {
  constexpr std::int64_t piece = 4 << 20;
  for (std::int64_t done = 0; done < range.count; done += piece) {
    const int count = static_cast<int>(std::min(piece, range.count - done));
    broadcast_values(copies, data() + range.first + done, count, MPI_BYTE, root);
  }
}

std::string notice_of_copies(const World& world, const std::string& why_not_shared) {
  for (const auto& why : all_gather(world, why_not_shared)) {
    if (!why.empty()) return "the ranks of a host could not share memory, so each holds all the data: " + why;
  }
  return {};
}

}  // namespace ddp
