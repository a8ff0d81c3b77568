#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

namespace ddp {

/// What HDF5's C library calls an identifier, closed at the end.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }

  [[nodiscard]] hid_t get() const noexcept { return id_; }
  explicit operator bool() const noexcept { return id_ >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// As H5Dopen and so on return it. Throws UseError "<subject>: could not <attempt>: <the library's cause>".
[[nodiscard]] Hdf5Handle hdf5_handle(hid_t id, Hdf5Handle::Close close, const std::string& subject,
                                     const char* attempt);
void check_hdf5(long long status, const std::string& subject, const char* attempt);

/// While it lives, the library prints no errors of its own.
class QuietHdf5 {
 public:
  QuietHdf5();
  ~QuietHdf5();
  QuietHdf5(const QuietHdf5&) = delete;
  QuietHdf5& operator=(const QuietHdf5&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace ddp
