// Each place that waits for a queue, in a short training, is left out in turn while that queue is slow: what the
// training computes must change, or else the place waits for nothing.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "support/program.hpp"

namespace ddp::test {
namespace {

struct Wait {
  int number = 0, stream = 0;
  std::string call, code;
};

struct Training {
  std::string computed;  ///< status, losses, and the parameters' hash
  std::string said;
};

/// Rank 0 alone has the first parameters, and steps of different sizes follow each other without a look at the loss,
/// which is told at each epoch's end.
Training train_on_gpus(const std::string& init, Environment environment, const std::string& save = {}) {
  const ScratchFolder folder;
  std::vector<std::string> argv{LINEAR_DDP_WITH_FAKE_GPUS, "2"};
  auto program = mpirun(2, {"--device", "cuda", "--data", data_path("cases/BASE.csv"), "--target", "y", "--init", init,
                            "--global-batch=3", "--epochs=4", "--log-every=3", "--lr=0.05", "--timeout=10", "--metrics",
                            folder / "m.jsonl"});
  if (!save.empty()) program.insert(program.end(), {"--save", save});
  argv.insert(argv.end(), program.begin(), program.end());
  environment.emplace_back("LINEAR_DDP_BUILD", LINEAR_DDP_BUILD_FOLDER);
  environment.emplace_back("LINEAR_DDP_FAKE_PAGEABLE", "late");
  const Outcome outcome = run(argv, environment, std::chrono::seconds(30));
  Training result{fmt::format("status {}", outcome.status), outcome.err};
  std::ifstream metrics(folder / "m.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    for (const char* key : {"loss", "train_loss", "parameters_hash"}) {
      if (event.contains(key)) result.computed += fmt::format(", {}", event[key].dump());
    }
  }
  return result;
}

/// Rank 0's, by the place in the program.
std::map<std::string, std::vector<Wait>> list_waits(const std::string& said) {
  std::map<std::string, std::vector<Wait>> places;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    Wait wait;
    char call[64] = "", code[128] = "";
    const int found = std::sscanf(line.c_str(), "fakegpu: rank 0: wait %d: %63[^,], for stream %d, in %127[^\n]",
                                  &wait.number, call, &wait.stream, code);
    if (found != 4) continue;
    wait.call = call;
    wait.code = code;
    places[code].push_back(wait);
  }
  return places;
}

/// Whether the training without one of these waits goes wrong; a place in a loop may wait for nothing at its first and
/// last turns.
bool is_missed(std::vector<Wait> turns, const std::string& init, const std::string& right) {
  std::rotate(turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(turns.size() / 2), turns.end());
  return std::any_of(turns.begin(), turns.end(), [&](const Wait& wait) {
    const Training training = train_on_gpus(init, {{"LINEAR_DDP_FAKE_SLOW_STREAM", std::to_string(wait.stream)},
                                                   {"LINEAR_DDP_FAKE_IGNORE_WAIT", std::to_string(wait.number)}});
    EXPECT_THAT(training.said, ::testing::HasSubstr("is ignored"));
    return training.computed != right;
  });
}

TEST(EveryWait, OfATrainingIsNeeded) {
  const ScratchFolder folder;
  const std::string init = folder / "init.safetensors";
  ASSERT_THAT(train_on_gpus("torch", {}, init).computed, ::testing::StartsWith("status 0"));
  const Training whole = train_on_gpus(init, {{"LINEAR_DDP_FAKE_IGNORE_WAIT", "list"}});
  ASSERT_THAT(whole.computed, ::testing::StartsWith("status 0"));
  for (const char* stream : {"1", "2", "3"}) {
    EXPECT_EQ(train_on_gpus(init, {{"LINEAR_DDP_FAKE_SLOW_STREAM", stream}}).computed, whole.computed);
  }

  const auto by_code = list_waits(whole.said);
  ASSERT_GE(by_code.size(), 6U) << whole.said;
  const std::vector<std::pair<std::string, std::vector<Wait>>> places(by_code.begin(), by_code.end());
  std::vector<char> missed(places.size());
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < places.size(); at = next++) {
          missed[at] = is_missed(places[at].second, init, whole.computed);
        }
      });
    }
  }
  std::size_t waits = 0;
  for (std::size_t at = 0; at < places.size(); ++at) {
    const auto& turns = places[at].second;
    waits += turns.size();
    EXPECT_TRUE(missed[at]) << turns[0].call << ", " << turns.size() << " times, first as wait " << turns[0].number
                            << ", waits for nothing (addr2line -fCe build/linear_ddp " << turns[0].code << ")";
  }
  fmt::print("{} waits in {} places, each left out\n", waits, places.size());
}

}  // namespace
}  // namespace ddp::test
