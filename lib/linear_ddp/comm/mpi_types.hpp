#pragma once

#include <mpi.h>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/comm/process_group.hpp>

namespace ddp {

[[nodiscard]] inline MPI_Datatype mpi_type(ElementType type) {
  switch (type) {
    case ElementType::u8:
      return MPI_UINT8_T;
    case ElementType::i64:
      return MPI_INT64_T;
    case ElementType::f32:
      return MPI_FLOAT;
    case ElementType::f64:
      return MPI_DOUBLE;
  }
  fail("choose an MPI type", "unknown element type");
}

[[nodiscard]] inline MPI_Op mpi_operation(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return MPI_SUM;
    case Reduction::min:
      return MPI_MIN;
    case Reduction::max:
      return MPI_MAX;
  }
  fail("choose an MPI operation", "unknown reduction");
}

}  // namespace ddp
