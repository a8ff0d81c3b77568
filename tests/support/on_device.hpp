#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <linear_ddp/device/device.hpp>

namespace ddp::test {

using Floats = std::vector<float>;

/// Values on the device, `offset` floats behind an aligned address.
class OnDevice {
 public:
  OnDevice(Device& device, const Floats& values, std::int64_t offset = 0)
      : device_(device), buffer_(device, static_cast<std::int64_t>(values.size()) + offset), offset_(offset) {
    device_.upload(data(), values.data(), values.size() * sizeof(float));
  }
  float* data() { return buffer_.data() + offset_; }
  Floats values() {
    Floats result(static_cast<std::size_t>(buffer_.numel() - offset_));
    device_.download(result.data(), data(), result.size() * sizeof(float));
    return result;
  }

 private:
  Device& device_;
  Buffer<float> buffer_;
  std::int64_t offset_;
};
/// Between -1 and 1; the same ones for the same seed.
inline Floats random_floats(std::int64_t numel, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  Floats values(static_cast<std::size_t>(numel));
  for (float& value : values) value = distribution(random);
  return values;
}

}  // namespace ddp::test
