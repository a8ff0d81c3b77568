#pragma once

#include "options.hpp"

namespace CLI {
class App;
}

namespace ddp::app {

/// Makes the options of train known, with their help. Parsed, they are in `options`, which outlives the parsing.
void add_train_options(CLI::App& app, TrainOptions& options);

/// Likewise those of bench.
void add_bench_options(CLI::App& app, BenchOptions& options);

/// Likewise those of evaluate and predict.
void add_use_options(CLI::App& app, Command command, UseOptions& options);

}  // namespace ddp::app
