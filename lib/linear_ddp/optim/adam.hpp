#pragma once

#include <linear_ddp/optim/optimizer.hpp>

namespace ddp {

/// torch.optim.Adam's arguments and defaults; AdamW's, but for its weight_decay of 0.01, which the caller gives.
struct AdamOptions {
  double lr = 0.001, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false;
  /// AdamW: p ← p - lr · weight_decay · p, apart from the gradient. Adam: g ← g + weight_decay · p.
  bool decoupled = false;
};

/// torch.optim.Adam and AdamW over one of a model's heads, in one pass. With t the step, from 1:
///   m ← beta1 · m + (1 - beta1) · g;   v ← beta2 · v + (1 - beta2) · g²;   amsgrad: v̂ ← max(v̂, v), else v̂ = v
///   p ← p - lr / (1 - beta1^t) · m / (√v̂ / √(1 - beta2^t) + eps)
class Adam final : public Optimizer {
 public:
  /// Throws UseError for a value out of its range, as PyTorch does.
  Adam(Device& device, Model& model, const AdamOptions& options, const GradientOptions& gradient = {},
       std::int64_t head = 0);

 private:
  Scalars next_scalars() override;
  void update(std::span<const Gradient> ranges, const float* scalars) override;

  AdamOptions options_;
  AdamUpdate update_;
};

}  // namespace ddp
