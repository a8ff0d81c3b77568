#include <linear_ddp/parallel/distributed_data_parallel.hpp>

#include <fmt/format.h>

#include <linear_ddp/base/hash.hpp>
#include <linear_ddp/launch/preflight.hpp>

namespace ddp {

DistributedDataParallel::DistributedDataParallel(const World& world, Device& device, ProcessGroup& group, Model& model)
    : world_(world), device_(device), group_(group), model_(model) {
  require_agreement(world, {{"model", model.layout().description()}}, "the ranks' models differ",
                    "build the same model on every rank");
  device_.wait(Queue::communication, Queue::compute);
  group_.broadcast(model_.parameters(), 0);
  device_.wait(Queue::compute, Queue::communication);
  registration_ = group_.register_memory(model_.gradients().data(), model_.gradients().size_bytes());
}

DistributedDataParallel::~DistributedDataParallel() {
  group_.deregister_memory(registration_);
}

void DistributedDataParallel::backward(const Batch& batch, std::optional<double> total, StepPart part) {
  const double divisor = total ? *total : static_cast<double>(batch.rows * group_.size());
  const double scale = divisor == 0 ? 0 : 1 / (divisor * static_cast<double>(model_.losses_of_a_row()));
  model_.backward(batch, static_cast<float>(scale), !part.first);
  if (!part.last) return;
  device_.wait(Queue::communication, Queue::compute);
  const std::int64_t with_stop = model_.layout().numel() + model_.shape().heads + 1;
  group_.all_reduce(model_.gradients().first(static_cast<std::size_t>(with_stop)));
  device_.wait(Queue::compute, Queue::communication);
}

float DistributedDataParallel::loss() {
  float value = 0;
  losses({&value, 1});
  return value;
}

void DistributedDataParallel::losses(std::span<float> values) {
  device_.download(values.data(), losses_on_device(), values.size_bytes());
}

// Nothing but the all-reduce writes to the number behind the losses: zeros add up to zero, and what is above it stays
// so on every rank, if it grows to infinity.
void DistributedDataParallel::request_stop() {
  const float one = 1;
  device_.upload(model_.gradients().data() + model_.layout().numel() + model_.shape().heads, &one, sizeof(one));
}

bool DistributedDataParallel::stop_requested() {
  float sum = 0;
  device_.download(&sum, losses_on_device() + model_.shape().heads, sizeof(sum));
  return sum > 0;
}

std::uint64_t DistributedDataParallel::require_equal_replicas() {
  Hash hash;
  for (std::size_t slot = 0; slot < model_.layout().slots().size(); ++slot) {
    const std::vector<float> values = model_.download(slot);
    hash.add(std::as_bytes(std::span(values)));
  }
  require_agreement(world_, {{"parameters", fmt::format("hash {:016x}", hash.value())}},
                    "the replicas have drifted apart, so the result is not to be trusted",
                    "this is a fault of the hardware, of a library, or of linear_ddp: please report it");
  return hash.value();
}

}  // namespace ddp
