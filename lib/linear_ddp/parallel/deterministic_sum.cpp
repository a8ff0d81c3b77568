#include <linear_ddp/parallel/deterministic_sum.hpp>

#include <algorithm>
#include <bit>
#include <string>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

constexpr std::int64_t piece_numel = std::int64_t{1} << 18;

std::int64_t shards_of(const ProcessGroup& group) {
  const int ranks = group.size();
  if (!std::has_single_bit(static_cast<unsigned>(ranks)) || ranks > deterministic_shards) {
    throw UseError("the same bits on any number of ranks are had from 1, 2, 4, 8, 16, 32 or 64 ranks, not from " +
                   std::to_string(ranks));
  }
  return deterministic_shards / ranks;
}

}  // namespace

DeterministicSum::DeterministicSum(Device& device, ProcessGroup& group, Model& model)
    : device_(device),
      group_(group),
      model_(model),
      sum_(model.gradients().first(static_cast<std::size_t>(model.layout().numel() + model.shape().heads + 1))) {
  const auto numel = std::ssize(sum_);
  for (std::int64_t shards = 1; shards < shards_of(group); shards *= 2) waiting_.emplace_back(device, numel);
  before_ = Buffer<float>(device, numel);
  const std::int64_t piece = std::min(numel, piece_numel);
  own_ = Buffer<float>(device, piece, MemoryUse::communication);
  of_all_ = Buffer<float>(device, piece * group.size(), MemoryUse::communication);
  device.ignore_alignment();
}

void DeterministicSum::backward(const Batch& batch, float loss_scale, bool add) {
  if (add) device_.add(sum_.data(), std::ssize(sum_), 1, before_.data(), true);
  add_up_shards(batch, loss_scale);
  add_up_ranks();
  if (add) device_.add(before_.data(), std::ssize(sum_), 1, sum_.data());
}

/// Shards meet in the order of a tree whose first pairs are furthest apart: 0 and 32, 16 and 48, …, as rank 0 alone has
/// them when there are 32 ranks. Taken in the order of their reversed bits, neighbours are pairs.
void DeterministicSum::add_up_shards(const Batch& batch, float loss_scale) {
  const std::int64_t shards = shards_of(group_), in = model_.shape().in, targets = model_.losses_of_a_row();
  const auto first_row_of = [&](std::int64_t shard) {
    return shard * (batch.rows / shards) + std::min(shard, batch.rows % shards);
  };
  for (std::int64_t place = 0; place < shards; ++place) {
    std::int64_t shard = 0;
    for (std::int64_t bit = 1; bit < shards; bit *= 2) shard = 2 * shard + ((place & bit) != 0 ? 1 : 0);
    const std::int64_t row = first_row_of(shard);
    model_.backward({first_row_of(shard + 1) - row, batch.x + row * in, batch.target + row * targets,
                     batch.row_weight == nullptr ? nullptr : batch.row_weight + row},
                    loss_scale);
    // A sum of 2^k shards is complete when place + 1 is a multiple of it; else it waits.
    std::size_t level = 0;
    for (; (place >> level) % 2 == 1; ++level) {
      device_.add(sum_.data(), std::ssize(sum_), 1, waiting_[level].data());
      device_.add(waiting_[level].data(), std::ssize(sum_), 1, sum_.data(), true);
    }
    if (level < waiting_.size()) device_.add(sum_.data(), std::ssize(sum_), 1, waiting_[level].data(), true);
  }
}

void DeterministicSum::add_up_ranks() {
  const std::int64_t ranks = group_.size();
  if (ranks == 1) return;
  for (std::int64_t begin = 0; begin < std::ssize(sum_); begin += piece_numel) {
    const std::int64_t numel = std::min(piece_numel, std::ssize(sum_) - begin);
    float* piece = sum_.data() + begin;
    const auto of_rank = [&](std::int64_t rank) { return of_all_.data() + rank * numel; };
    device_.add(piece, numel, 1, own_.data(), true);
    device_.wait(Queue::communication, Queue::compute);
    group_.all_gather(std::span<const float>(own_.data(), static_cast<std::size_t>(numel)),
                      of_all_.span().first(static_cast<std::size_t>(numel * ranks)));
    device_.wait(Queue::compute, Queue::communication);
    for (std::int64_t apart = ranks / 2; apart > 0; apart /= 2) {
      for (std::int64_t rank = 0; rank < apart; ++rank) device_.add(of_rank(rank + apart), numel, 1, of_rank(rank));
    }
    device_.add(of_rank(0), numel, 1, piece, true);
  }
}

}  // namespace ddp
