#include <linear_ddp/optim/sgd.hpp>

#include <linear_ddp/optim/require.hpp>

namespace ddp {

Sgd::Sgd(Device& device, Model& model, const SgdOptions& options, const GradientOptions& gradient)
    : Optimizer(device, model, options.lr, gradient) {
  require(options.momentum >= 0, "--momentum may not be negative");
  require(options.weight_decay >= 0, "--weight-decay may not be negative");
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
          "--nesterov needs a --momentum above 0 and a --dampening of 0");
  update_.momentum = static_cast<float>(options.momentum);
  update_.dampening = static_cast<float>(options.dampening);
  update_.weight_decay = static_cast<float>(options.weight_decay);
  update_.nesterov = options.nesterov;
  update_.first = true;
  if (options.momentum > 0) {
    momentum_buffer_ = Buffer<float>(device, model.layout().numel());
    update_.momentum_buffer = momentum_buffer_.data();
  }
}

void Sgd::update(const Gradient& gradient, const float* scalars) {
  device_.sgd_update(gradient, update_, scalars);
  update_.first = false;
}

}  // namespace ddp
