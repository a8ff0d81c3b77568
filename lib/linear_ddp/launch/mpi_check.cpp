#include <linear_ddp/launch/mpi_check.hpp>

#include <mpi.h>

#include <array>

#include <linear_ddp/base/error.hpp>

namespace ddp {

void check_mpi(int status, const char* attempt, std::source_location where) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  fail(attempt, std::string(text.data(), static_cast<std::size_t>(length)),
       "MPI reports this when a peer died or the network failed; look for the first rank's own message", where);
}

}  // namespace ddp
