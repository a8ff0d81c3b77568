// Each call of CUDA, cuBLASLt and NCCL that a short training makes fails once, and hangs once: the job ends soon, with
// an error that says where and why. By default a sample; LINEAR_DDP_FAULTS=all for all calls on both ranks, first and
// last.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

#include "support/program.hpp"

namespace ddp::test {
namespace {

using ::testing::HasSubstr;

struct Fault {
  int rank;
  std::string call;
  long nth;
  bool hangs;
};

/// An error that the call may give, and the words that its library has for it.
struct Failure {
  int number;
  std::string text;
};

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != text.npos; });
}

/// No room for what is made, the GPU lost for what is queued and awaited.
Failure failure_of(const std::string& call) {
  const bool makes = is_any_of(call, {"Malloc", "Create", "Instantiate"});
  if (call.starts_with("cublas")) {
    return makes ? Failure{3, "CUBLAS_STATUS_ALLOC_FAILED"} : Failure{13, "CUBLAS_STATUS_EXECUTION_FAILED"};
  }
  if (call.starts_with("nccl")) return {2, "system error"};
  if (makes) return {2, "cudaErrorMemoryAllocation: out of memory"};
  if (is_any_of(call, {"SetDevice", "GetDevice"})) return {46, "cudaErrorDevicesUnavailable"};
  return {719, "cudaErrorLaunchFailure: unspecified launch failure"};
}

/// Whose failure need not be told: nothing is lost by it, or the error comes again from a later call.
bool may_fail_unnoticed(const std::string& call) {
  // An object's release: the work is done by then, or another error is on its way.
  if (is_any_of(call, {"cublasLtDestroy", "DescDestroy", "PreferenceDestroy", "LayoutDestroy", "EventDestroy",
                       "StreamDestroy", "GraphDestroy", "GraphExecDestroy", "cudaFree", "ncclCommAbort"}))
    return true;
  // What they offer makes things faster; without it plain memory serves.
  if (is_any_of(call, {"ncclMemFree", "ncclCommRegister", "ncclCommDeregister"})) return true;
  // They tell of errors, and have none of their own.
  return is_any_of(call, {"GetLastError", "PeekAtLastError", "GetErrorString", "GetErrorName"});
}

std::string description(const Fault& fault) {
  return fault.call + " " + std::to_string(fault.nth) + (fault.hangs ? " hangs" : " fails") + " on rank " +
         std::to_string(fault.rank);
}

/// The time-out is a bound on a run that hangs, and out of the way of one that fails.
Outcome train_on_gpus(Environment environment, bool hangs = false) {
  std::vector<std::string> argv{LINEAR_DDP_WITH_FAKE_GPUS, "2"};
  const auto program = mpirun(2, {"--device", "cuda", "--data", data_path("cases/BASE.csv"), "--target", "y",
                                  "--global-batch", "4", "--epochs", "3", "--timeout", hangs ? "3" : "20"});
  argv.insert(argv.end(), program.begin(), program.end());
  environment.emplace_back("LINEAR_DDP_BUILD", LINEAR_DDP_BUILD_FOLDER);
  return run(argv, environment, std::chrono::seconds(25));
}

/// How often each rank makes each call when all is well.
std::vector<std::map<std::string, long>> count_calls() {
  const ScratchFolder folder;
  const auto outcome = train_on_gpus({{"LINEAR_DDP_FAKE_CALLS", folder / "calls"}});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  std::vector<std::map<std::string, long>> counts(2);
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    std::ifstream file(folder / ("calls." + std::to_string(rank)));
    std::string call;
    for (long number = 0; file >> call >> number;) counts[rank][call] = number;
  }
  return counts;
}

std::vector<Fault> choose_faults(const std::vector<std::map<std::string, long>>& counts) {
  const char* asked = std::getenv("LINEAR_DDP_FAULTS");
  const bool all = asked != nullptr && std::string_view(asked) == "all";
  std::vector<Fault> faults;
  for (const bool hangs : {false, true}) {
    int turn = 0;
    for (const auto& [call, number] : counts[0]) {
      ++turn;
      for (const int rank : {0, 1}) {
        const auto own = counts[static_cast<std::size_t>(rank)].find(call);
        if (own == counts[static_cast<std::size_t>(rank)].end()) continue;
        const bool chosen = all || counts[1].count(call) == 0 || rank == (hangs ? turn % 2 : 1);
        if (chosen) faults.push_back({rank, call, 1, hangs});
        // How often a call is polled for depends on the time it takes.
        if (all && own->second > 1 && call != "ncclCommGetAsyncError")
          faults.push_back({rank, call, own->second, hangs});
      }
    }
  }
  return faults;
}

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != line.npos) found.push_back(line);
  }
  return found;
}

void expect_a_good_end(const Fault& fault, const Outcome& outcome) {
  SCOPED_TRACE(description(fault) + "\n" + outcome.err);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_THAT(outcome.err, HasSubstr("injected")) << "the call was not made";
  for (const int crash : {132, 134, 135, 136, 137, 139}) EXPECT_NE(outcome.status, crash);
  EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("terminate called")));
  if (!fault.hangs && may_fail_unnoticed(fault.call)) return;

  EXPECT_NE(outcome.status, 0);
  const auto errors = lines_with(outcome.err, "linear_ddp: error: ");
  EXPECT_GE(errors.size(), 1U);
  for (const std::string rank : {"0", "1"}) {
    EXPECT_LE(lines_with(outcome.err, "linear_ddp: error: rank " + rank).size(), 1U) << "a rank's end has one cause";
  }
  for (const auto& error : errors) {
    EXPECT_THAT(error, ::testing::ContainsRegex("error: rank [01] (on|sees no GPU \\()"));
  }
  if (fault.hangs) return;
  EXPECT_THAT(errors, ::testing::Contains(HasSubstr("rank " + std::to_string(fault.rank))));
  EXPECT_THAT(errors, ::testing::Contains(::testing::ContainsRegex("could not |sees no GPU")));
  EXPECT_THAT(errors, ::testing::Contains(HasSubstr(failure_of(fault.call).text)));
  EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr(": leak: ")));
}

/// Hanging jobs wait for a watchdog and not for a core, so several run at a time.
std::vector<Outcome> run_all(const std::vector<Fault>& faults) {
  std::vector<Outcome> outcomes(faults.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t at = next++; at < faults.size(); at = next++) {
      const Fault& fault = faults[at];
      const std::string error = fault.hangs ? "hang" : std::to_string(failure_of(fault.call).number);
      outcomes[at] = train_on_gpus({{"LINEAR_DDP_FAKE_FAIL", std::to_string(fault.rank) + ":" + fault.call + ":" +
                                                                 std::to_string(fault.nth) + ":" + error}},
                                   fault.hangs);
    }
  };
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work);
  threads.clear();
  return outcomes;
}

TEST(EveryCall, ThatFailsOrHangsEndsTheJobWithItsCause) {
  const auto counts = count_calls();
  ASSERT_GT(counts[0].size(), 40U);
  const auto faults = choose_faults(counts);
  const auto outcomes = run_all(faults);
  std::map<std::pair<bool, int>, int> table;
  double longest = 0;
  for (std::size_t at = 0; at < faults.size(); ++at) {
    expect_a_good_end(faults[at], outcomes[at]);
    ++table[{faults[at].hangs, outcomes[at].timed_out ? -1 : outcomes[at].status}];
    longest = std::max(longest, outcomes[at].seconds);
  }
  fmt::print("{} faults in {} calls; the longest run took {:.1f} s\n", faults.size(), counts[0].size(), longest);
  for (const auto& [kind, number] : table) {
    const std::string status = kind.second == -1 ? "no end" : "status " + std::to_string(kind.second);
    fmt::print("  {}  {:10}  {:4}\n", kind.first ? "hang" : "fail", status, number);
  }
}

}  // namespace
}  // namespace ddp::test
