#include <cblas.h>
#include <fmt/format.h>

#include "linear_ddp/device/gemm.hpp"

namespace ddp::gemm {

std::string library() {
  // The configuration reads "OpenBLAS 0.3.21 NO_AFFINITY …".
  const std::string configuration = openblas_get_config();
  const std::size_t version_end = configuration.find(' ', configuration.find(' ') + 1);
  return fmt::format("{} ({})", configuration.substr(0, version_end), openblas_get_corename());
}

void use_calling_thread_only() {
  openblas_set_num_threads(1);
}

}  // namespace ddp::gemm
