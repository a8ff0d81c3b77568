#pragma once

#include <CLI/App.hpp>
#include <string>

#include "options.hpp"

/// Options that contradict others. All throw UseError that names the option, and why.
namespace ddp::app {

/// For the first of some options, "--a --b", that is on the command line.
void refuse_given(const CLI::App& app, const char* names, const std::string& why);

/// What does not go with --optimizer exact or lbfgs, with --sweep or --checkpoint, and penalties that contradict each
/// other.
void refuse_for_optimum(const CLI::App& app, const TrainOptions& options);

}  // namespace ddp::app
