#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ddp {

/// One tensor of a safetensors file (https://huggingface.co/docs/safetensors): name, dtype ("F32", "F64", "I64", …),
/// shape, and its bytes, little-endian and row-major.
struct StoredTensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
  std::string path = {};  ///< of the file it was read from, for messages

  /// The values as float, converted from F32, F64, F16 or BF16. Throws UseError for another dtype.
  [[nodiscard]] std::vector<float> floats() const;
  /// The same as double.
  [[nodiscard]] std::vector<double> doubles() const;
};

struct StoredFile {
  std::vector<StoredTensor> tensors;            ///< in the order of the data
  std::map<std::string, std::string> metadata;  ///< "__metadata__"
  std::string path = {};                        ///< where it was read from, for messages

  /// Throws UseError that lists the names when there is no such tensor.
  [[nodiscard]] const StoredTensor& at(const std::string& name) const;
};

/// Throws UseError when the file is not a complete, consistent safetensors file (every length, shape, offset and name
/// is checked before memory is taken) or cannot be opened, Error when reading it fails.
[[nodiscard]] StoredFile read_safetensors(const std::string& path);

/// Writes the whole file or none: see base/atomic_file.hpp. Tensors in the order given and without gaps, as the format
/// demands; the first at a multiple of 8 bytes. The same StoredFile makes the same bytes. Throws Error when a name
/// occurs twice or is no UTF-8, or a shape does not fit its bytes.
void write_safetensors(const std::string& path, const StoredFile& file);

/// Throws Error when the shape does not have as many values.
[[nodiscard]] StoredTensor make_f32(const std::string& name, std::vector<std::int64_t> shape,
                                    const std::vector<float>& values);
[[nodiscard]] StoredTensor make_f64(const std::string& name, std::vector<std::int64_t> shape,
                                    const std::vector<double>& values);

}  // namespace ddp
