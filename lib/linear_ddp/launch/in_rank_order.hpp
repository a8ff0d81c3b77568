#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// Collective. Rank 0's `take` gets what the ranks' `next` return until they have no more: all of rank 0's, then all of
/// rank 1's, …, one at a time, so that no rank holds more than its own and rank 0 another's. They are sent when they
/// are asked for. What `next` or `take` throws is this rank's alone: its peers wait.
void in_rank_order(const World& world, const std::function<std::optional<std::string>()>& next,
                   const std::function<void(std::string_view)>& take);

}  // namespace ddp
