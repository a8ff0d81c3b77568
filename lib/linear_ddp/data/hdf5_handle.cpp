#include <linear_ddp/data/hdf5_handle.hpp>

#include <fmt/format.h>

#include <array>
#include <cstring>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

using Text = std::array<char, 200>;

/// The innermost entry of the error stack comes first, and tells the cause.
herr_t take_first(unsigned, const H5E_error2_t* error, void* text) {
  if (error->desc != nullptr) std::strncpy(static_cast<Text*>(text)->data(), error->desc, sizeof(Text) - 1);
  return 1;  // enough
}

}  // namespace

Hdf5Handle hdf5_handle(hid_t id, Hdf5Handle::Close close, const std::string& subject, const char* attempt) {
  check_hdf5(id, subject, attempt);
  return {id, close};
}

void check_hdf5(long long status, const std::string& subject, const char* attempt) {
  if (status >= 0) return;
  Text cause{};
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &cause);
  throw UseError(fmt::format("{}: could not {}: {} (HDF5)", subject, attempt, cause.data()));
}

QuietHdf5::QuietHdf5() {
  H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

QuietHdf5::~QuietHdf5() {
  H5Eset_auto2(H5E_DEFAULT, print_, data_);
}

}  // namespace ddp
