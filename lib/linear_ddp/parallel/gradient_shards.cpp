#include <linear_ddp/parallel/gradient_shards.hpp>

#include <algorithm>

namespace ddp {

GradientShards::GradientShards(Device& device, ProcessGroup& group, Model& model)
    : device_(device),
      group_(group),
      model_(model),
      numel_(model.shard_numel()),
      begin_(group.rank() * numel_),
      gradients_(device, numel_, MemoryUse::communication) {}

void GradientShards::reduce() {
  const std::span<const float> all(model_.gradients().data(), static_cast<std::size_t>(numel_ * group_.size()));
  group_.reduce_scatter(all, gradients_.span());
}

OptimizerShard GradientShards::optimizer_shard() {
  const std::int64_t end = std::min(begin_ + numel_, model_.layout().numel());
  OptimizerShard shard;
  for (Gradient range : model_.ranges(0)) {
    const std::int64_t offset = range.parameters - model_.parameters().data();
    const std::int64_t from = std::max(offset, begin_), to = std::min(offset + range.numel, end);
    if (from >= to) continue;
    range.numel = to - from;
    range.parameters += from - offset;
    range.gradients = gradients_.data() + (from - begin_);
    range.penalized = std::clamp<std::int64_t>(range.penalized - (from - offset), 0, range.numel);
    shard.ranges.push_back(range);
  }
  if (shard.ranges.empty()) {
    shard.ranges.push_back({.parameters = model_.parameters().data(), .gradients = gradients_.data()});
  }
  shard.add_up = [this](double* sum) { add_up(sum); };
  shard.gather = [this] { gather_parameters(); };
  return shard;
}

void GradientShards::add_up(double* sum) {
  device_.wait(Queue::communication, Queue::compute);
  group_.all_reduce(std::span(sum, 1));
  device_.wait(Queue::compute, Queue::communication);
}

void GradientShards::gather_parameters() {
  const auto numel = static_cast<std::size_t>(numel_);
  float* all = model_.parameters().data();
  device_.wait(Queue::communication, Queue::compute);
  group_.all_gather(std::span<const float>(all + begin_, numel),
                    std::span(all, numel * static_cast<std::size_t>(group_.size())));
  device_.wait(Queue::compute, Queue::communication);
}

}  // namespace ddp
