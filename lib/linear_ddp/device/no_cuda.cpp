#include <linear_ddp/base/error.hpp>
#include <linear_ddp/device/device.hpp>

namespace ddp {

std::unique_ptr<Device> make_cuda_device(int) {
  throw UseError("this program was built without CUDA: use --device cpu, or configure with -DLINEAR_DDP_CUDA=ON");
}

CudaVisibility visible_cuda_devices() {
  CudaVisibility none;
  none.why_none = "built without CUDA";
  return none;
}

}  // namespace ddp
