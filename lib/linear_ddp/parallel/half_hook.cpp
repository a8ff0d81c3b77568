#include <linear_ddp/parallel/communication_hook.hpp>

#include <vector>

namespace ddp {
namespace {

class HalfHook final : public CommunicationHook {
 public:
  HalfHook(Device& device, HalfType type) : device_(device), type_(type) {}

  void start(ProcessGroup& group, const GradientBucket& bucket) override {
    if (bucket.index >= halves_.size()) halves_.resize(bucket.index + 1);
    auto& halves = halves_[bucket.index];
    const auto numel = std::ssize(bucket.gradients);
    if (halves.numel() != numel) halves = Buffer<std::uint16_t>(device_, numel, MemoryUse::communication);
    device_.to_half(type_, bucket.gradients.data(), numel, halves.data());
    device_.wait(Queue::communication, Queue::compute);
    group.all_reduce(halves.span(), type_);
  }

  void finish(ProcessGroup&, const GradientBucket& bucket) override {
    device_.from_half(type_, halves_[bucket.index].data(), std::ssize(bucket.gradients), bucket.gradients.data());
  }

 private:
  Device& device_;
  HalfType type_;
  std::vector<Buffer<std::uint16_t>> halves_;  // of each bucket
};

}  // namespace

std::unique_ptr<CommunicationHook> make_half_hook(Device& device, HalfType type) {
  return std::make_unique<HalfHook>(device, type);
}

}  // namespace ddp
