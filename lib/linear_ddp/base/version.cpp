#include <linear_ddp/base/version.hpp>

namespace ddp {

std::string_view version() noexcept {
  return LINEAR_DDP_VERSION;
}

}  // namespace ddp
