#pragma once

#include <functional>

#include <linear_ddp/launch/world.hpp>

namespace ddp::fuzz {

/// Runs `work` once for each rank, and returns when all have ended. The ranks are threads of this process, so that the
/// fuzzer sees what each of them runs, and no MPI has to be started: thread_ranks.cpp takes the place of launch/world
/// and launch/collectives. Only one runs at a time, until it waits for the others: what a rank calls need not be
/// thread-safe (HDF5 is not), and a run can be repeated. Ends the program when the ranks meet in different collectives,
/// or one waits for another that has ended.
void on_ranks(int ranks, const std::function<void(const World&)>& work);

}  // namespace ddp::fuzz
