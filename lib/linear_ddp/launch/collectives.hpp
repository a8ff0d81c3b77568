#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <linear_ddp/launch/world.hpp>

/// Collectives of set-up and evaluation, on host memory. The collectives of a training step are ProcessGroup's.
namespace ddp {

/// In place, over all ranks; every rank gets the result.
void all_reduce_sum(const World& world, std::span<std::int64_t> values);
void all_reduce_sum(const World& world, std::span<double> values);
void all_reduce_sum(const World& world, std::span<long double> values);
void all_reduce_min(const World& world, std::span<double> values);
void all_reduce_max(const World& world, std::span<double> values);

/// Sum of the values of the ranks before this one; 0 on rank 0.
[[nodiscard]] std::int64_t sum_of_ranks_before(const World& world, std::int64_t value);

/// One value, or one text, of each rank, in rank order.
[[nodiscard]] std::vector<std::int64_t> all_gather(const World& world, std::int64_t value);
[[nodiscard]] std::vector<std::string> all_gather(const World& world, const std::string& text);

/// All ranks' values one after the other, in rank order; the ranks may bring different numbers of them (any number,
/// also more than MPI's int can count).
[[nodiscard]] std::vector<float> all_gather(const World& world, std::span<const float> values);

/// The root's text, on every rank.
[[nodiscard]] std::string broadcast(const World& world, const std::string& text, int root);

}  // namespace ddp
