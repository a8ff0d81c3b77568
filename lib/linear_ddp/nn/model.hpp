#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <linear_ddp/device/device.hpp>
#include <linear_ddp/nn/layout.hpp>

namespace ddp {

/// Rows on the device: x [rows, in], target [rows, out]. A view; may be empty (rows 0).
struct Batch {
  std::int64_t rows = 0;
  const float* x = nullptr;
  const float* target = nullptr;
};

/// One linear layer with its loss, on one device. Work is queued; the device outlives the model.
class Model {
 public:
  /// Parameters start as zeros.
  Model(Device& device, const LinearShape& shape, LossKind loss = LossKind::mse);

  [[nodiscard]] const LinearShape& shape() const noexcept { return shape_; }
  [[nodiscard]] const ParameterLayout& layout() const noexcept { return layout_; }

  /// The flat buffers, in the device's memory. The gradients carry a tail: gradients[layout().numel()] is the loss of
  /// the last backward, so that one all-reduce brings both.
  [[nodiscard]] std::span<float> parameters() noexcept { return parameters_.span(); }
  [[nodiscard]] std::span<float> gradients() noexcept { return gradients_.span(); }

  /// y[rows, out] = x[rows, in] · weightᵀ + bias, in the device's memory.
  void forward(std::int64_t rows, const float* x, float* y);

  /// Loss and gradients of L = loss_scale · Σ l over the batch's rows and outputs; overwrites the gradients.
  void backward(const Batch& batch, float loss_scale);

  /// Σ l over the batch's rows and outputs, in float64, written to the device's memory.
  void loss_sum(const Batch& batch, double* sum);

  /// A tensor's values on the host, by its number in layout().slots(). Waits.
  [[nodiscard]] std::vector<float> download(std::size_t slot) const;
  /// Sets a tensor. Queued. Throws Error unless values.size() is the slot's numel.
  void upload(std::size_t slot, std::span<const float> values);

 private:
  [[nodiscard]] LinearLoss operation(const Batch& batch, float loss_scale) noexcept;
  [[nodiscard]] float* bias_of(Buffer<float>& buffer) noexcept;

  Device& device_;
  LinearShape shape_;
  LossKind loss_;
  ParameterLayout layout_;
  Buffer<float> parameters_, gradients_;
};

}  // namespace ddp
