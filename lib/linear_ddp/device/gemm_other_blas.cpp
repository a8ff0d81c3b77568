#include "linear_ddp/device/gemm.hpp"

namespace ddp::gemm {

std::string library() {
  return "BLAS";
}

void use_calling_thread_only() {}  // no call that every BLAS knows; OMP_NUM_THREADS=1 serves where it has threads

}  // namespace ddp::gemm
