#include <linear_ddp/optim/sgd.hpp>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

void require(bool condition, const char* message) {
  if (!condition) throw UseError(message);
}

}  // namespace

Sgd::Sgd(Device& device, Model& model, const SgdOptions& options) : device_(device) {
  require(options.lr >= 0, "the learning rate (--lr) may not be negative");
  require(options.momentum >= 0, "--momentum may not be negative");
  require(options.weight_decay >= 0, "--weight-decay may not be negative");
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
          "--nesterov needs a --momentum above 0 and a --dampening of 0");
  update_.numel = model.layout().numel();
  update_.parameters = model.parameters().data();
  update_.gradients = model.gradients().data();
  update_.lr = static_cast<float>(options.lr);
  update_.momentum = static_cast<float>(options.momentum);
  update_.dampening = static_cast<float>(options.dampening);
  update_.weight_decay = static_cast<float>(options.weight_decay);
  update_.nesterov = options.nesterov;
  update_.first = true;
  if (options.momentum > 0) {
    momentum_buffer_ = Buffer<float>(device, update_.numel);
    update_.momentum_buffer = momentum_buffer_.data();
  }
}

void Sgd::step() {
  device_.sgd_update(update_);
  update_.first = false;
}

}  // namespace ddp
