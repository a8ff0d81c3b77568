#pragma once

#include <Eigen/Core>
#include <cstdint>

#include "support/on_device.hpp"

namespace ddp::test {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Floats in float64.
inline Matrix matrix(const Floats& values, std::int64_t rows, std::int64_t columns) {
  using Floating = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const Floating>(values.data(), rows, columns).cast<double>();
}

}  // namespace ddp::test
