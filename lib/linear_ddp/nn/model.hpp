#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <linear_ddp/device/device.hpp>
#include <linear_ddp/nn/layout.hpp>

namespace ddp {

/// Rows on the device: x [rows, in], target [rows, out], or [rows] classes for cross entropy. A view; may be empty.
struct Batch {
  std::int64_t rows = 0;
  const float* x = nullptr;
  const float* target = nullptr;
  const float* row_weight = nullptr;  ///< [rows]; null: 1 each
};

/// PyTorch's losses and their arguments.
struct LossOptions {
  LossKind kind = LossKind::mse;
  double label_smoothing = 0;         ///< cross entropy's, from 0 to below 1
  std::vector<float> class_weight{};  ///< cross entropy's, one for each output; empty: 1 each
};

/// A linear layer with its loss, several heads of one side by side, or a stack of layers, on one device. Work is
/// queued; the device outlives the model.
class Model {
 public:
  /// Parameters start as zeros. The flat buffers have room for so many equal shards. Throws UseError for an option that
  /// the loss does not have.
  Model(Device& device, const LinearShape& shape, const LossOptions& loss = {}, std::int64_t shards = 1);

  [[nodiscard]] const LinearShape& shape() const noexcept { return shape_; }
  [[nodiscard]] const ParameterLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const LossOptions& loss() const noexcept { return loss_; }
  /// How many losses l there are for a row and head: its outputs, or 1 for cross entropy.
  [[nodiscard]] std::int64_t losses_of_a_row() const noexcept { return ddp::losses_of_a_row(loss_.kind, shape_.out); }

  /// The flat buffers, in the device's memory, layout().numel() long or somewhat longer. The gradients carry a tail:
  /// behind layout().numel() of them come the heads' losses of the last backward, so that one all-reduce brings both,
  /// and one number more, which is the caller's, and 0 at first.
  [[nodiscard]] std::span<float> parameters() noexcept { return parameters_.span(); }
  [[nodiscard]] std::span<float> gradients() noexcept { return gradients_.span(); }

  /// The length of each of the shards: the first layout().numel() values are in them.
  [[nodiscard]] std::int64_t shard_numel() const noexcept { return shard_numel_; }

  /// y[rows, heads, out] = x[rows, in] · weightᵀ + bias, in the device's memory.
  void forward(std::int64_t rows, const float* x, float* y);

  /// Called while a backward pass goes on: the work that makes the gradients from this offset on, and the losses behind
  /// them, is queued. The offsets are those of the layers, the last layer first.
  using OnReady = std::function<void(std::int64_t offset)>;

  /// Loss and gradients of L = loss_scale · Σ row_weight · l over the batch; overwrites the gradients, or adds to them.
  /// `sum` [heads], in the device's memory, gets Σ row_weight · l in float64, likewise; null: not wanted.
  void backward(const Batch& batch, float loss_scale, bool add = false, double* sum = nullptr,
                const OnReady& ready = {});

  /// Σ row_weight · l over the batch, in float64, written to the device's memory [heads].
  void loss_sum(const Batch& batch, double* sum);

  /// What an optimizer of one of the heads goes over: ranges of the flat buffers, with its weights penalised; of a
  /// stack one for each layer.
  [[nodiscard]] std::vector<Gradient> ranges(std::int64_t head);

  /// A head's weight [out, in], then its bias [out], on the host. The first waits, the second is queued.
  [[nodiscard]] std::vector<float> download_head(std::int64_t head) const;
  void upload_head(std::int64_t head, std::span<const float> values);

  /// A tensor's values on the host, by its number in layout().slots(). Waits.
  [[nodiscard]] std::vector<float> download(std::size_t slot) const;
  /// Sets a tensor. Queued. Throws Error unless values.size() is the slot's numel.
  void upload(std::size_t slot, std::span<const float> values);

 private:
  /// Of a hidden layer: its outputs, what their activation's gradient is told from, and dL/dz. [rows, out]
  struct Hidden {
    float *y = nullptr, *kept = nullptr, *dz = nullptr;
  };
  [[nodiscard]] const std::vector<Hidden>& room_for(std::int64_t rows);
  const float* forward_hidden(std::int64_t rows, const float* x);
  [[nodiscard]] InputGradient inputs_of(std::size_t layer) const noexcept;
  [[nodiscard]] LinearLoss operation(const Batch& batch, float loss_scale);
  [[nodiscard]] static float* bias_of(Buffer<float>& buffer, const LinearLayer& layer) noexcept;

  Device& device_;
  LinearShape shape_;
  LossOptions loss_;
  ParameterLayout layout_;
  std::int64_t shard_numel_;
  Buffer<float> parameters_, gradients_, class_weight_;
  std::vector<Buffer<float>> rooms_;  // smaller ones stay: recordings may use them
  std::int64_t room_rows_ = 0;
  std::vector<Hidden> hidden_;  // in the last room
};

}  // namespace ddp
