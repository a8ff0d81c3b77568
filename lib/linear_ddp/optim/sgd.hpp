#pragma once

#include <linear_ddp/optim/optimizer.hpp>

namespace ddp {

/// torch.optim.SGD's arguments and defaults.
struct SgdOptions {
  double lr = 0.001, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

/// torch.optim.SGD over one of a model's heads, in one pass:
///   g ← g + weight_decay · p;   b ← g at the first step, then momentum · b + (1 - dampening) · g
///   p ← p - lr · (nesterov ? g + momentum · b : momentum > 0 ? b : g)
class Sgd final : public Optimizer {
 public:
  /// Throws UseError for a negative value, and for nesterov without momentum or with dampening, as PyTorch does.
  Sgd(Device& device, Model& model, const SgdOptions& options, const GradientOptions& gradient = {},
      std::int64_t head = 0);

 private:
  Scalars next_scalars() override { return {static_cast<float>(lr())}; }
  void update(std::span<const Gradient> ranges, const float* scalars) override;

  SgdUpdate update_;
};

}  // namespace ddp
