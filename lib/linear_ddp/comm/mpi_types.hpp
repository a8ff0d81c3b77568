#pragma once

#include <mpi.h>

#include <linear_ddp/comm/process_group.hpp>

namespace ddp {

/// Numbers of 16 bits, which MPI has not, are bits to it.
[[nodiscard]] MPI_Datatype mpi_type(ElementType type);

/// MPI's operations, and sums of numbers of 16 bits, rounded to such.
class MpiOperations {
 public:
  MpiOperations();
  ~MpiOperations();
  MpiOperations(const MpiOperations&) = delete;
  MpiOperations& operator=(const MpiOperations&) = delete;

  /// Throws Error for a minimum or maximum of numbers of 16 bits.
  [[nodiscard]] MPI_Op of(ElementType type, Reduction reduction) const;

 private:
  MPI_Op fp16_sum_ = MPI_OP_NULL, bf16_sum_ = MPI_OP_NULL;
};

}  // namespace ddp
