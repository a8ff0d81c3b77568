#pragma once

#include "fake_nccl_channel.hpp"

namespace fakegpu {

/// The bytes of an element; 0 for a type that is not modelled.
std::size_t bytes_of(ncclDataType_t type);

/// Runs an operation together with the other ranks, on memory that this thread can reach. Sums are in the order of the
/// ranks. Throws as Channel::meet, and Failure when the ranks ask different things; all of them get the same text.
void run_operation(Channel& channel, const Operation& operation, const void* send, void* receive);

}  // namespace fakegpu
