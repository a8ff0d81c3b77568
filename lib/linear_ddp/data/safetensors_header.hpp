#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <linear_ddp/data/input_file.hpp>
#include <linear_ddp/data/safetensors.hpp>

namespace ddp {

struct SafetensorsEntry {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  ///< bytes, from the start of the data
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
  std::uint64_t data_start = 0;  ///< byte of the file
};

/// Bytes of a tensor; nothing when the dtype is unknown or the product is beyond 64 bits.
[[nodiscard]] std::optional<std::uint64_t> tensor_bytes(std::string_view dtype, const std::vector<std::int64_t>& shape);

/// The JSON between the length and the data. Throws UseError: no JSON, a key twice, unknown or missing, a wrong type.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& path);

/// Sorts the tensors by their place, and throws UseError unless each one's shape and dtype fill its range, and the
/// ranges cover the file's `data_bytes` without overlap or hole. `data_start`: where the data begin in the file.
void check_safetensors_layout(SafetensorsHeader& header, std::uint64_t data_start, std::uint64_t data_bytes,
                              const std::string& path);

/// The file's header, checked; the tensors in the order of the data. Throws UseError for what is no complete,
/// consistent safetensors file.
[[nodiscard]] SafetensorsHeader read_safetensors_header(const InputFile& file);

/// The JSON for tensors that lie in the order given, padded with spaces so that the data start at a multiple of 8
/// bytes. Throws Error when names, dtypes, shapes and bytes make no valid file.
[[nodiscard]] std::string format_safetensors_header(const StoredFile& file);

}  // namespace ddp
