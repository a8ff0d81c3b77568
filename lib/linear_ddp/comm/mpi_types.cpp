#include "linear_ddp/comm/mpi_types.hpp"

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/mpi_check.hpp>
#include "linear_ddp/comm/combine.hpp"

namespace ddp {
namespace {

template <ElementType type>
void add(void* from, void* to, int* numel, MPI_Datatype*) {
  combine(to, to, from, static_cast<std::size_t>(*numel), type, Reduction::sum);
}

}  // namespace

MPI_Datatype mpi_type(ElementType type) {
  switch (type) {
    case ElementType::u8:
      return MPI_UINT8_T;
    case ElementType::i64:
      return MPI_INT64_T;
    case ElementType::f16:
    case ElementType::bf16:
      return MPI_UINT16_T;
    case ElementType::f32:
      return MPI_FLOAT;
    case ElementType::f64:
      return MPI_DOUBLE;
  }
  fail("choose an MPI type", "unknown element type");
}

MpiOperations::MpiOperations() {
  check_mpi(MPI_Op_create(add<ElementType::f16>, 1, &fp16_sum_), "make a sum of numbers of 16 bits");
  check_mpi(MPI_Op_create(add<ElementType::bf16>, 1, &bf16_sum_), "make a sum of numbers of 16 bits");
}

MpiOperations::~MpiOperations() {
  MPI_Op_free(&fp16_sum_);
  MPI_Op_free(&bf16_sum_);
}

MPI_Op MpiOperations::of(ElementType type, Reduction reduction) const {
  if (type == ElementType::f16 || type == ElementType::bf16) {
    if (reduction == Reduction::sum) return type == ElementType::f16 ? fp16_sum_ : bf16_sum_;
    fail("choose an MPI operation", "numbers of 16 bits are only added up");
  }
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
