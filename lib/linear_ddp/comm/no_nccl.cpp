#include <linear_ddp/base/error.hpp>
#include <linear_ddp/comm/process_group.hpp>

namespace ddp {

std::unique_ptr<ProcessGroup> make_nccl_group(const World&, Device&, Watchdog&, std::chrono::seconds) {
  throw UseError("this program was built without NCCL: use --backend mpi, or configure with -DLINEAR_DDP_CUDA=ON");
}

std::string nccl_version() {
  return {};
}

}  // namespace ddp
