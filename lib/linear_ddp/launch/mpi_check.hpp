#pragma once

#include <source_location>
#include <string>

namespace ddp {

/// Throws Error with MPI's own text when `status` is not MPI_SUCCESS. Attempt: "add gradients over 4 ranks".
void check_mpi(int status, const char* attempt, std::source_location where = std::source_location::current());

}  // namespace ddp
