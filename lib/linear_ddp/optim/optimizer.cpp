#include <linear_ddp/optim/optimizer.hpp>

#include <cmath>

#include <linear_ddp/optim/require.hpp>

namespace ddp {
namespace {

/// Without a penalty neighbours are updated alike: as one.
std::vector<Gradient> joined(const std::vector<Gradient>& ranges) {
  std::vector<Gradient> joined;
  for (const Gradient& range : ranges) {
    if (!joined.empty() && joined.back().parameters + joined.back().numel == range.parameters) {
      joined.back().numel += range.numel;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

}  // namespace

Optimizer::Optimizer(Device& device, Model& model, double lr, const GradientOptions& options, std::int64_t head)
    : device_(device),
      ranges_(options.shard ? options.shard->ranges : model.ranges(head)),
      square_sum_(device, 1),
      scalars_(device, std::tuple_size_v<Scalars>) {
  require(options.l2 >= 0, "--l2 may not be negative");
  require(!options.clip_grad_norm || *options.clip_grad_norm > 0, "--clip-grad-norm must be above 0");
  set_lr(lr);
  if (options.l2 == 0) ranges_ = joined(ranges_);
  if (options.shard) {
    add_up_ = options.shard->add_up;
    gather_ = options.shard->gather;
  }
  for (Gradient& range : ranges_) {
    range.l2 = static_cast<float>(options.l2);
    if (!options.clip_grad_norm) continue;
    range.max_norm = static_cast<float>(*options.clip_grad_norm);
    range.square_sum = square_sum_.data();
  }
}

float* Optimizer::remember(const char* name) {
  std::int64_t numel = 0;
  for (const Gradient& range : ranges_) numel += range.numel;
  return memory_.emplace_back(Memory{name, Buffer<float>(device_, numel)}).values.data();
}

void Optimizer::set_lr(double lr) {
  require(lr >= 0 && std::isfinite(lr), "the learning rate (--lr) may not be negative");
  lr_ = lr;
}

void Optimizer::prepare() {
  ++steps_;
  const Scalars scalars = next_scalars();
  if (scalars == sent_) return;
  scalars_.upload(scalars);
  sent_ = scalars;
}

void Optimizer::add_up_squares(std::span<const Gradient> ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) device_.square_sum(ranges[i], square_sum_.data(), i > 0);
  if (add_up_) add_up_(square_sum_.data());
}

void Optimizer::update() {
  if (ranges_.front().square_sum != nullptr) add_up_squares(ranges_);
  update(ranges_, scalars_.data());
  if (gather_) gather_();
}

double Optimizer::penalty() {
  const float l2 = ranges_.front().l2;
  if (l2 == 0) return 0;
  std::vector<Gradient> weights;
  for (const Gradient& range : ranges_) {
    weights.push_back({.numel = range.penalized, .parameters = range.parameters, .gradients = range.parameters});
  }
  add_up_squares(weights);
  double sum = 0;
  square_sum_.download({&sum, 1});
  return static_cast<double>(l2) / 2 * sum;
}

}  // namespace ddp
