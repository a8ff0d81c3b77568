#pragma once

#include <span>

#include <linear_ddp/device/device.hpp>
#include <linear_ddp/nn/model.hpp>

namespace ddp {

/// torch.optim.SGD's arguments and defaults.
struct SgdOptions {
  double lr = 0.001, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// One update of the parameters by the gradients as they are. Queued.
  virtual void step() = 0;
};

/// torch.optim.SGD over a model's flat buffers, in one pass:
///   g ← g + weight_decay · p;   b ← g at the first step, then momentum · b + (1 - dampening) · g
///   p ← p - lr · (nesterov ? g + momentum · b : momentum > 0 ? b : g)
class Sgd final : public Optimizer {
 public:
  /// Throws UseError for a negative value, and for nesterov without momentum or with dampening, as PyTorch does. The
  /// device and the model outlive the optimizer.
  Sgd(Device& device, Model& model, const SgdOptions& options);
  void step() override;

 private:
  Device& device_;
  SgdUpdate update_;
  Buffer<float> momentum_buffer_;
};

}  // namespace ddp
