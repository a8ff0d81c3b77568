#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ddp::test {

/// Changes to this process's environment: a value sets the variable (an empty one too), nullopt removes it.
using Environment = std::vector<std::pair<std::string, std::optional<std::string>>>;

struct Outcome {
  int status;      ///< as in a shell: the exit status, or 128 + the signal that ended it
  bool timed_out;  ///< it, or anything it started, still held its output at the limit and was killed
  std::string out, err;
  double seconds;
};

/// Runs a program (found in PATH) with an empty standard input, until it has ended and both its streams are closed.
/// Throws std::runtime_error when it can't be started.
[[nodiscard]] Outcome run(const std::vector<std::string>& argv, const Environment& environment = {},
                          std::chrono::seconds limit = std::chrono::seconds(60));

/// The command that starts `linear_ddp arguments…` on so many ranks.
[[nodiscard]] std::vector<std::string> mpirun(int ranks, const std::vector<std::string>& arguments);

}  // namespace ddp::test
