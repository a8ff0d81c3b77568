#include <linear_ddp/launch/world.hpp>

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/mpi_check.hpp>

namespace ddp {

std::string launcher_mismatch(int world_size) {
  if (world_size != 1) return {};
  // The launcher nearest to the process knows best: inside an srun step, mpirun sets its own variable too.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const char* value = std::getenv(name)) {
      return std::atoi(value) > 1 ? fmt::format("{}={}", name, value) : std::string{};
    }
  }
  return {};
}

namespace {

/// Open MPI looks for fast networks at its start, which takes 0.2 s of 0.25 s, also where all ranks are on one host and
/// it ends with shared memory, "ob1". mpirun tells so; and without any launcher this rank is alone. What the user chose
/// stays.
void spare_search_for_networks() {
  const char* ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
  const char* local_ranks = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  const bool on_one_host = ranks != nullptr && local_ranks != nullptr && std::string_view(ranks) == local_ranks;
  const bool alone = std::getenv("PMIX_RANK") == nullptr && std::getenv("PMI_RANK") == nullptr;
  if (on_one_host || alone) setenv("OMPI_MCA_pml", "ob1", 0);
}

}  // namespace

World::World() : World(Nothing{}) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised) fail("initialise MPI", "it is initialised already", "use World(MPI_Comm)");
  spare_search_for_networks();
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "initialise MPI");
  owns_mpi_ = true;
  if (provided < MPI_THREAD_FUNNELED) fail("initialise MPI", "it offers less than MPI_THREAD_FUNNELED");
  join(MPI_COMM_WORLD);
  if (const std::string announced = launcher_mismatch(size_); !announced.empty()) {
    throw UseError(fmt::format("the launcher started several tasks ({}) but MPI sees 1: each would train alone and "
                               "write the same files; use `srun --mpi=pmix`, or the mpirun of the MPI library this "
                               "program was built with",
                               announced));
  }
}

World::World(MPI_Comm parent) : World(Nothing{}) {
  join(parent);
}

World::~World() {
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  if (owns_mpi_) MPI_Finalize();
}

std::string World::prefix() const { return size_ == 1 ? std::string{} : fmt::format("rank {} on {}: ", rank_, host_); }

void World::join(MPI_Comm parent) {
  check_mpi(MPI_Comm_dup(parent, &comm_), "duplicate the communicator");
  // Without this MPI aborts by itself, and no check after a call would ever run.
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "set the error handler");
  check_mpi(MPI_Comm_rank(comm_, &rank_), "ask for the rank");
  check_mpi(MPI_Comm_size(comm_, &size_), "ask for the number of ranks");

  MPI_Comm local = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local), "find the ranks of this host");
  check_mpi(MPI_Comm_rank(local, &local_rank_), "ask for the local rank");
  check_mpi(MPI_Comm_size(local, &local_size_), "ask for the number of local ranks");
  check_mpi(MPI_Comm_free(&local), "free the communicator of this host");

  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  check_mpi(MPI_Get_processor_name(name.data(), &length), "ask for the host's name");
  host_.assign(name.data(), static_cast<std::size_t>(length));
}

}  // namespace ddp
