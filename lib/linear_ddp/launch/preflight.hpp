#pragma once

#include <string>
#include <utility>
#include <vector>

#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// What must be equal on all ranks before training starts: ("NCCL", "2.28.9"), ("layout", "weight [10,10] f32, …"), …
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Collective. When facts differ, throws AgreedError(Status::failed): the headline, a table of the facts that differ,
/// each value with the ranks that have it, and the remedy. The ranks may bring different facts: one that a rank lacks
/// differs.
void require_agreement(const World& world, const Facts& facts, const std::string& headline, const std::string& remedy);

}  // namespace ddp
