#include <linear_ddp/parallel/distributed_data_parallel.hpp>

#include <fmt/format.h>

#include <utility>

#include <linear_ddp/base/hash.hpp>
#include <linear_ddp/launch/preflight.hpp>

namespace ddp {

namespace {

std::vector<GradientBucket> buckets_of(Model& model, const BucketOptions& options) {
  constexpr double mib = 1 << 20;
  std::vector<GradientBucket> buckets;
  const auto& layers = model.layout().layers();
  std::int64_t end = model.layout().numel();
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const double cap = mib * (buckets.empty() ? options.first_mb : options.cap_mb);
    const auto offset = static_cast<std::size_t>(layer->weight), numel = static_cast<std::size_t>(end) - offset;
    if (std::next(layer) != layers.rend() && static_cast<double>(numel * sizeof(float)) < cap) continue;
    buckets.push_back({buckets.size(), layer->weight, model.gradients().subspan(offset, numel)});
    end = layer->weight;
  }
  return buckets;
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(const World& world, Device& device, ProcessGroup& group, Model& model,
                                                 const BucketOptions& buckets)
    : world_(world), device_(device), group_(group), model_(model), buckets_(buckets_of(model, buckets)) {
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
  if (deterministic_) return deterministic_->backward(batch, static_cast<float>(scale), !part.first);
  if (part.last && !prepared_) static_cast<void>(prepare());
  if (part.last) prepared_ = false;
  started_ = 0;
  const auto start = [this](std::int64_t ready_from) { start_buckets(ready_from); };
  model_.backward(batch, static_cast<float>(scale), !part.first, nullptr, part.last ? start : Model::OnReady());
  if (part.last) finish_buckets();
}

void DistributedDataParallel::reduce() {
  if (!prepared_) static_cast<void>(prepare());
  prepared_ = false;
  started_ = 0;
  start_buckets(0);
  finish_buckets();
}

int DistributedDataParallel::prepare() {
  prepared_ = true;
  return hook_ ? hook_->prepare(steps_++) : 0;
}

OptimizerShard DistributedDataParallel::shard_optimizer() {
  shards_.emplace(device_, group_, model_);
  return shards_->optimizer_shard();
}

/// Those that lie where gradients are ready. The tail goes with the first of them.
void DistributedDataParallel::start_buckets(std::int64_t ready_from) {
  for (; !shards_ && started_ < buckets_.size() && buckets_[started_].offset >= ready_from; ++started_) {
    const GradientBucket& bucket = buckets_[started_];
    if (hook_) {
      hook_->start(group_, bucket);
      continue;
    }
    device_.wait(Queue::communication, Queue::compute);
    const std::size_t tail = started_ == 0 ? tail_of_step().size() : 0;
    group_.all_reduce(std::span(bucket.gradients.data(), bucket.gradients.size() + tail));
  }
}

void DistributedDataParallel::finish_buckets() {
  if (hook_ || shards_) {
    device_.wait(Queue::communication, Queue::compute);
    group_.all_reduce(tail_of_step());
    if (shards_) shards_->reduce();
  }
  device_.wait(Queue::compute, Queue::communication);
  for (std::size_t i = 0; hook_ && i < buckets_.size(); ++i) hook_->finish(group_, buckets_[i]);
}

void DistributedDataParallel::register_comm_hook(std::unique_ptr<CommunicationHook> hook) {
  hook_ = std::move(hook);
}

/// Behind the gradients: the losses, and whether to stop.
std::span<float> DistributedDataParallel::tail_of_step() {
  return model_.gradients().subspan(static_cast<std::size_t>(model_.layout().numel()),
                                    static_cast<std::size_t>(model_.shape().heads) + 1);
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
