#pragma once

#include <linear_ddp/launch/watchdog.hpp>
#include <linear_ddp/launch/world.hpp>
#include "console.hpp"
#include "options.hpp"

namespace ddp::app {

/// Collective. What train does with --optimizer exact: least squares solved directly, on the host.
void solve(const World& world, const TrainOptions& options, Watchdog& watchdog, Console& console);

}  // namespace ddp::app
