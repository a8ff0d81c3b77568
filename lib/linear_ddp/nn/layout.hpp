#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linear_ddp/device/operations.hpp>

namespace ddp {

/// One tensor of a flat buffer: values [offset, offset + numel), row-major.
struct TensorSlot {
  std::string name;  ///< PyTorch's: "weight", "bias"; of a stack, as torch.nn.Sequential's: "0.weight", "2.weight"
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0, numel = 0;
};

/// A linear layer, or with hidden sizes a stack of them: in → hidden[0] → … → out, an activation after each but the
/// last.
struct LinearShape {
  std::int64_t in = 0, out = 0;
  bool bias = true;
  /// Layers side by side on the same inputs, each with parameters of its own: weight [heads · out, in].
  std::int64_t heads = 1;
  std::vector<std::int64_t> hidden{};
  Activation activation = Activation::relu;

  /// "Linear(10 -> 4)", "Linear(10 -> 16), relu, Linear(16 -> 4)".
  [[nodiscard]] std::string description() const;
  /// Of all layers together, for each row.
  [[nodiscard]] std::int64_t outputs() const noexcept;
};

/// A layer of a stack, and where its parameters lie.
struct LinearLayer {
  std::int64_t in = 0, out = 0;  ///< out: of all heads
  std::int64_t weight = 0;       ///< offset of weight [out, in]
  std::int64_t bias = -1;        ///< offset of bias [out]; -1: none
};

/// Where each parameter lies in ONE flat buffer. Gradients and optimizer state have the same layout, so an optimizer
/// step is one pass, an all-reduce one call, and a bucket or a shard a range. Tensors start at multiples of 16 bytes,
/// as cuBLASLt wants; the padding between them is zero and stays zero.
class ParameterLayout {
 public:
  /// Throws UseError when a size is below 1, there are more than 1024 heads, or heads of a stack, or the product of
  /// sizes is beyond what one GPU or a 32-bit BLAS can address.
  explicit ParameterLayout(const LinearShape& shape);

  /// From the inputs on; the parameters of each lie behind those of the one before.
  [[nodiscard]] const std::vector<LinearLayer>& layers() const noexcept { return layers_; }
  /// A layer's weight, and then its bias, of each layer in turn.
  [[nodiscard]] const std::vector<TensorSlot>& slots() const noexcept { return slots_; }
  /// Length of the flat buffer, padding included.
  [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }
  /// How many parameters there are, without padding.
  [[nodiscard]] std::int64_t parameters() const noexcept;
  /// "weight [10, 10] f32, bias [10] f32"
  [[nodiscard]] std::string description() const;

 private:
  void add_layer(const std::string& prefix, std::int64_t in, std::int64_t out, bool bias);

  std::vector<LinearLayer> layers_;
  std::vector<TensorSlot> slots_;
  std::int64_t numel_ = 0;
};

}  // namespace ddp
