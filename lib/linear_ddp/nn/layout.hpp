#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddp {

/// One tensor of a flat buffer: values [offset, offset + numel), row-major.
struct TensorSlot {
  std::string name;  ///< PyTorch's: "weight", "bias"
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0, numel = 0;
};

struct LinearShape {
  std::int64_t in = 0, out = 0;
  bool bias = true;
  /// Layers side by side on the same inputs, each with parameters of its own: weight [heads · out, in].
  std::int64_t heads = 1;
};

/// Where each parameter lies in ONE flat buffer. Gradients and optimizer state have the same layout, so an optimizer
/// step is one pass, an all-reduce one call, and a bucket or a shard a range. Tensors start at multiples of 16 bytes,
/// as cuBLASLt wants; the padding between them is zero and stays zero.
class ParameterLayout {
 public:
  /// Throws UseError when a size is below 1, there are more than 1024 heads, or the product of sizes is beyond what one
  /// GPU or a 32-bit BLAS can address.
  explicit ParameterLayout(const LinearShape& shape);

  [[nodiscard]] const std::vector<TensorSlot>& slots() const noexcept { return slots_; }
  /// Length of the flat buffer, padding included.
  [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }
  /// How many parameters there are, without padding.
  [[nodiscard]] std::int64_t parameters() const noexcept;
  /// "weight [10, 10] f32, bias [10] f32"
  [[nodiscard]] std::string description() const;

 private:
  std::vector<TensorSlot> slots_;
  std::int64_t numel_ = 0;
};

}  // namespace ddp
