#pragma once

#include <linear_ddp/launch/watchdog.hpp>
#include <linear_ddp/launch/world.hpp>
#include "options.hpp"

namespace ddp::app {

/// Collective. `on_timeout` ends the job; it runs on a thread of its own.
void train(const World& world, const TrainOptions& options, const Watchdog::OnTimeout& on_timeout);

/// Collective. Prints ranks, hosts, devices and libraries, on rank 0.
void info(const World& world);

}  // namespace ddp::app
