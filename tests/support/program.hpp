#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <linear_ddp/data/safetensors.hpp>
#include "support/data_path.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_folder.hpp"

/// What tests of the program share.
namespace ddp::test {

using ScratchFolder = TemporaryFolder;

/// The events of a --metrics file; a line that is not strict JSON fails the test.
inline std::vector<nlohmann::json> read_metrics(const std::string& path) {
  std::vector<nlohmann::json> events;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    events.push_back(nlohmann::json::parse(line, nullptr, false));
    EXPECT_FALSE(events.back().is_discarded()) << "no JSON: " << line;
  }
  EXPECT_FALSE(events.empty()) << path << " holds no event";
  return events;
}

inline std::size_t occurrences(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++count;
  return count;
}

/// Runs the program and expects it to end well.
inline Outcome train(int ranks, const std::vector<std::string>& arguments, const Environment& environment = {}) {
  Outcome outcome = run(mpirun(ranks, arguments), environment);
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  return outcome;
}

/// Expects the program to end with `status`, and to say `message` once. One rank is started without mpirun, which would
/// take two seconds to tell that it failed.
inline void expect_refusal(int ranks, const std::vector<std::string>& arguments, int status,
                           const ::testing::Matcher<std::string>& message, const Environment& environment = {}) {
  std::vector<std::string> command = mpirun(ranks, arguments);
  if (ranks == 1) command.erase(command.begin(), std::find(command.begin(), command.end(), LINEAR_DDP_PROGRAM));
  const Outcome outcome = run(command, environment);
  const std::string shown = ::testing::PrintToString(arguments) + " on " + std::to_string(ranks) + " ranks\n";
  EXPECT_EQ(outcome.status, status) << shown << outcome.out << outcome.err;
  EXPECT_FALSE(outcome.timed_out) << shown;
  EXPECT_THAT(outcome.err, message) << shown;
  EXPECT_EQ(occurrences(outcome.err, "linear_ddp: error: "), 1U) << shown << outcome.err;
}

}  // namespace ddp::test
