#include <linear_ddp/data/sampler.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/base/error.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include <linear_ddp/parallel/deterministic_sum.hpp>

namespace ddp {
namespace {

void require(bool condition, const std::string& message) {
  if (!condition) throw UseError("sampler: " + message);
}

void require_valid(const SamplerOptions& options) {
  require(options.rows >= 1, fmt::format("the data set has {} rows, at least 1 is needed", options.rows));
  require(options.ranks >= 1, fmt::format("{} ranks, at least 1 is needed", options.ranks));
  require(options.rank >= 0 && options.rank < options.ranks,
          fmt::format("rank {} is not in [0, {})", options.rank, options.ranks));
  require(options.global_batch >= 1,
          fmt::format("a global batch of {} rows, at least 1 is needed", options.global_batch));
}

std::int64_t round_down(std::int64_t value, std::int64_t step) {
  return value - value % step;
}

std::int64_t rows_of_epoch(const SamplerOptions& options) {
  if (!options.repeat) return options.drop_last ? round_down(options.rows, options.global_batch) : options.rows;
  const std::int64_t ranks = options.ranks;
  return options.drop_last ? round_down(options.rows, ranks) : round_up(options.rows, ranks);
}

}  // namespace

DistributedSampler::DistributedSampler(const SamplerOptions& options) : options_(options) {
  require_valid(options);
  total_ = rows_of_epoch(options);
  set_epoch(0);
}

void DistributedSampler::set_epoch(std::int64_t epoch) {
  if (std::exchange(epoch_, epoch) == epoch) return;
  std::vector<std::int64_t> order;  // empty: 0, 1, 2, …
  if (options_.shuffle) {
    order = TorchGenerator(options_.seed + static_cast<std::uint64_t>(epoch)).randperm(options_.rows);
  }
  const auto row_at = [&](std::int64_t place) {
    const std::int64_t source = place % options_.rows;  // padding goes round and round when rows < ranks
    return options_.shuffle ? order[static_cast<std::size_t>(source)] : source;
  };
  own_.clear();
  weights_.clear();
  for (std::int64_t step = 0; step < steps(); ++step) {
    const std::int64_t begin = step * options_.global_batch, end = begin + global_rows(step);
    const auto take = [&](std::int64_t own) { own_.push_back(row_at(begin + options_.rank + own * options_.ranks)); };
    const auto rows = static_cast<std::int64_t>(own_rows(global_rows(step)));
    if (options_.by_shards)
      each_row_by_shard(rows, options_.ranks, take);
    else
      for (std::int64_t own = 0; own < rows; ++own) take(own);
    if (!options_.weight) continue;
    double sum = 0;
    for (std::int64_t place = begin; place < end; ++place) sum += options_.weight(row_at(place));
    weights_.push_back(sum);
  }
}

double DistributedSampler::global_weight(std::int64_t step) const {
  return options_.weight ? weights_.at(static_cast<std::size_t>(step)) : static_cast<double>(global_rows(step));
}

std::size_t DistributedSampler::own_rows(std::int64_t global_rows) const noexcept {
  return static_cast<std::size_t>((global_rows - options_.rank + options_.ranks - 1) / options_.ranks);
}

std::int64_t DistributedSampler::steps() const noexcept {
  return total_ / options_.global_batch + (total_ % options_.global_batch != 0 ? 1 : 0);
}

std::int64_t DistributedSampler::global_rows(std::int64_t step) const noexcept {
  return std::clamp<std::int64_t>(total_ - step * options_.global_batch, 0, options_.global_batch);
}

std::span<const std::int64_t> DistributedSampler::rows_of_step(std::int64_t step) const {
  const std::size_t first = static_cast<std::size_t>(step) * own_rows(global_rows(0));
  return std::span(own_).subspan(first, own_rows(global_rows(step)));
}

}  // namespace ddp
