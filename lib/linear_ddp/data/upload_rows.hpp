#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <linear_ddp/device/device.hpp>

namespace ddp {

/// [rows.size(), columns] in the device's memory, a piece at a time: fill(some of the rows, where to) makes them on the
/// host.
template <class Fill>
[[nodiscard]] Buffer<float> upload_rows(Device& device, std::span<const std::int64_t> rows, std::int64_t columns,
                                        const Fill& fill) {
  Buffer<float> result(device, static_cast<std::int64_t>(rows.size()) * columns);
  const auto piece_rows =
      static_cast<std::size_t>(std::max<std::int64_t>(1, (std::int64_t{1} << 20) / std::max<std::int64_t>(1, columns)));
  std::vector<float> piece(std::min(piece_rows, rows.size()) * static_cast<std::size_t>(columns));
  float* target = result.data();
  for (std::size_t row = 0; row < rows.size(); row += piece_rows) {
    const auto some = rows.subspan(row, std::min(piece_rows, rows.size() - row));
    fill(some, piece.data());
    const std::size_t numel = some.size() * static_cast<std::size_t>(columns);
    device.upload(target, piece.data(), numel * sizeof(float));
    target += numel;
  }
  return result;
}

}  // namespace ddp
