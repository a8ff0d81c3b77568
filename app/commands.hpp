#pragma once

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/watchdog.hpp>
#include <linear_ddp/launch/world.hpp>
#include "options.hpp"

namespace ddp::app {

/// Collective. Returns the status to end with: ok, or that of a training that a signal has stopped.
[[nodiscard]] Status train(const World& world, const TrainOptions& options, Watchdog& watchdog);

/// Collective. Prints what a saved model is worth on a table.
void evaluate_model(const World& world, const UseOptions& options, Watchdog& watchdog);

/// Collective. Writes what a saved model says of each row of a table.
void predict(const World& world, const UseOptions& options);

/// Collective. Times a training step, its parts, and what limits them.
void bench(const World& world, const BenchOptions& options, Watchdog& watchdog);

/// Collective. Prints ranks, hosts, devices and libraries, on rank 0.
void info(const World& world, Watchdog& watchdog);

}  // namespace ddp::app
