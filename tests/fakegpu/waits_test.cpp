// Each place that waits for a queue, in a short training, is left out in turn while that queue is slow: what the
// training computes must change, or else the place waits for nothing.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using Arguments = std::vector<std::string>;

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
Training train_on_gpus(const Arguments& model, const std::string& init, Environment environment,
                       const std::string& save = {}) {
  const ScratchFolder folder;
  std::vector<std::string> argv{LINEAR_DDP_WITH_FAKE_GPUS, "2"};
  auto program = mpirun(2, {"--device", "cuda", "--data", data_path("cases/BASE.csv"), "--target", "y", "--init", init,
                            "--global-batch=3", "--epochs=4", "--log-every=3", "--lr=0.05", "--timeout=10", "--metrics",
                            folder / "m.jsonl"});
  program.insert(program.end(), model.begin(), model.end());
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
bool is_missed(std::vector<Wait> turns, const Arguments& model, const std::string& init, const std::string& right) {
  std::rotate(turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(turns.size() / 2), turns.end());
  return std::any_of(turns.begin(), turns.end(), [&](const Wait& wait) {
    const Training training = train_on_gpus(model, init,
                                            {{"LINEAR_DDP_FAKE_SLOW_STREAM", std::to_string(wait.stream)},
                                             {"LINEAR_DDP_FAKE_IGNORE_WAIT", std::to_string(wait.number)}});
    EXPECT_THAT(training.said, ::testing::HasSubstr("is ignored"));
    return training.computed != right;
  });
}

/// Adds the places of a training, and which of them were missed.
void leave_out_each(const Arguments& model, std::map<std::string, bool>& missed_places) {
  const ScratchFolder folder;
  const std::string init = folder / "init.safetensors";
  ASSERT_THAT(train_on_gpus(model, "torch", {}, init).computed, ::testing::StartsWith("status 0"));
  const Training whole = train_on_gpus(model, init, {{"LINEAR_DDP_FAKE_IGNORE_WAIT", "list"}});
  ASSERT_THAT(whole.computed, ::testing::StartsWith("status 0"));
  for (const char* stream : {"1", "2", "3"}) {
    EXPECT_EQ(train_on_gpus(model, init, {{"LINEAR_DDP_FAKE_SLOW_STREAM", stream}}).computed, whole.computed);
  }

  const auto by_code = list_waits(whole.said);
  ASSERT_GE(by_code.size(), 6U) << whole.said;
  std::vector<std::vector<Wait>> places;
  std::size_t waits = 0;
  for (const auto& [code, turns] : by_code) {
    waits += turns.size();
    if (!missed_places[fmt::format("{} in {}", turns[0].call, code)]) places.push_back(turns);
  }
  std::vector<char> missed(places.size());
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < places.size(); at = next++) {
          missed[at] = is_missed(places[at], model, init, whole.computed);
        }
      });
    }
  }
  for (std::size_t at = 0; at < places.size(); ++at) {
    missed_places[fmt::format("{} in {}", places[at][0].call, places[at][0].code)] = missed[at];
  }
  fmt::print("{} waits in {} places, of which {} were left out\n", waits, by_code.size(), places.size());
}

/// A place need not matter in each of the trainings, but in one. (The stack has more tensors than the ring of pinned
/// memory by which they are sent has pieces.)
TEST(EveryWait, OfATrainingIsNeeded) {
  const Arguments buckets{"--hidden",          "4,3,3,3,3", "--activation",    "tanh",
                          "--first-bucket-mb", "0",         "--bucket-cap-mb", "0"};
  Arguments compressed = buckets;
  compressed.insert(compressed.end(), {"--compress", "fp16"});
  std::map<std::string, bool> missed;
  for (const Arguments& model : {Arguments{}, buckets, compressed}) leave_out_each(model, missed);
  for (const auto& [place, matters] : missed) {
    EXPECT_TRUE(matters) << place << " waits for nothing (addr2line -fCe build/linear_ddp ADDRESS)";
  }
}

}  // namespace
}  // namespace ddp::test
