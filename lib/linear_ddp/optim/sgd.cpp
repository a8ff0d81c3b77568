#include <linear_ddp/optim/sgd.hpp>

#include <linear_ddp/optim/require.hpp>

namespace ddp {

Sgd::Sgd(Device& device, Model& model, const SgdOptions& options, const GradientOptions& gradient, std::int64_t head)
    : Optimizer(device, model, options.lr, gradient, head) {
  require(options.momentum >= 0, "--momentum may not be negative");
  require(options.weight_decay >= 0, "--weight-decay may not be negative");
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
          "--nesterov needs a --momentum above 0 and a --dampening of 0");
  update_.momentum = static_cast<float>(options.momentum);
  update_.dampening = static_cast<float>(options.dampening);
  update_.weight_decay = static_cast<float>(options.weight_decay);
  update_.nesterov = options.nesterov;
  if (options.momentum > 0) update_.momentum_buffer = remember("momentum_buffer");
}

void Sgd::update(std::span<const Gradient> ranges, const float* scalars) {
  SgdUpdate of_range = update_;
  of_range.first = steps() == 1;
  for (const Gradient& range : ranges) {
    device_.sgd_update(range, of_range, scalars);
    if (of_range.momentum_buffer != nullptr) of_range.momentum_buffer += range.numel;
  }
}

}  // namespace ddp
