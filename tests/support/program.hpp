#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <linear_ddp/data/safetensors.hpp>
#include "support/subprocess.hpp"

/// What tests of the program share.
namespace ddp::test {

inline std::string data_path(const std::string& name) { return std::string(LINEAR_DDP_TEST_DATA) + "/" + name; }

/// An empty folder of this test's own, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "linear_ddp_test_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

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

/// Runs the program and expects it to end well.
inline Outcome train(int ranks, const std::vector<std::string>& arguments, const Environment& environment = {}) {
  Outcome outcome = run(mpirun(ranks, arguments), environment);
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  return outcome;
}

/// Expects the program to end with `status` within 10 s, and to say `message` once.
inline void expect_refusal(int ranks, const std::vector<std::string>& arguments, int status,
                           const ::testing::Matcher<std::string>& message, const Environment& environment = {}) {
  const Outcome outcome = run(mpirun(ranks, arguments), environment);
  const std::string shown = ::testing::PrintToString(arguments) + " on " + std::to_string(ranks) + " ranks\n";
  EXPECT_EQ(outcome.status, status) << shown << outcome.out << outcome.err;
  EXPECT_FALSE(outcome.timed_out) << shown;
  EXPECT_LT(outcome.seconds, 10) << shown;
  EXPECT_THAT(outcome.err, message) << shown;
  std::size_t messages = 0;
  for (std::size_t at = 0; (at = outcome.err.find("linear_ddp: error: ", at)) != std::string::npos; ++at) ++messages;
  EXPECT_EQ(messages, 1U) << shown << outcome.err;
}

}  // namespace ddp::test
