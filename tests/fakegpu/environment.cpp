// What the environment asks for: injected faults, ignored waits, counts of calls; and the report at exit.
#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "runtime.hpp"

namespace fakegpu {
namespace {

struct Fault {
  std::string call, error;
  long nth = 0;
};

/// LINEAR_DDP_FAKE_FAIL=rank:call:nth:error[,…]; those of this rank.
std::vector<Fault> read_faults() {
  std::vector<Fault> faults;
  const char* text = setting("LINEAR_DDP_FAKE_FAIL");
  std::istringstream list(text == nullptr ? "" : text);
  for (std::string item; std::getline(list, item, ',');) {
    std::istringstream fields(item);
    std::string who, nth;
    Fault fault;
    std::getline(fields, who, ':');
    std::getline(fields, fault.call, ':');
    std::getline(fields, nth, ':');
    std::getline(fields, fault.error);
    fault.nth = std::atol(nth.c_str());
    if (fault.nth < 1 || (fault.error != "hang" && std::atoi(fault.error.c_str()) == 0)) {
      die("LINEAR_DDP_FAKE_FAIL has '" + item + "', not rank:call:nth:error with an error number or 'hang'");
    }
    if (who == std::to_string(rank())) faults.push_back(fault);
  }
  return faults;
}

struct Counts {
  std::mutex mutex;
  std::map<std::string, long> calls;
  std::map<std::string, int> objects;
};

// Never destroyed: workers outlive main.
Counts& counts() {
  static auto& counts = *new Counts;
  return counts;
}

void report() {
  const std::lock_guard lock(counts().mutex);
  for (const auto& [kind, number] : counts().objects) {
    if (number != 0 && lost_context() == cudaSuccess) {
      std::fprintf(stderr, "fakegpu: rank %d: leak: %d of kind %s\n", rank(), number, kind.c_str());
    }
  }
  if (const char* prefix = setting("LINEAR_DDP_FAKE_CALLS"); prefix != nullptr) {
    std::ofstream file(std::string(prefix).append(".").append(std::to_string(rank())));
    for (const auto& [name, number] : counts().calls) file << name << ' ' << number << '\n';
  }
}

/// Where the program called the library, and where that was called from: the same for the same code, whenever it runs.
std::string calling_code() {
  void* frames[32];
  const int depth = backtrace(frames, 32);
  Dl_info self{};
  dladdr(reinterpret_cast<const void*>(&rank), &self);
  std::ostringstream text;
  for (int i = 0, found = 0; i < depth && found < 2; ++i) {
    Dl_info code{};
    if (dladdr(frames[i], &code) == 0 || code.dli_fbase == self.dli_fbase) continue;
    text << (found++ == 0 ? "" : ", called from ") << std::hex
         << static_cast<char*>(frames[i]) - static_cast<char*>(code.dli_fbase);
  }
  return text.str();
}

// After the program's own destructors, since the program depends on this library.
struct ReportAtExit {
  ~ReportAtExit() { report(); }
} const report_at_exit;

}  // namespace

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

int rank() {
  const char* value = setting("OMPI_COMM_WORLD_RANK");
  return value == nullptr ? 0 : std::atoi(value);
}

void die(const std::string& message) {
  std::fprintf(stderr, "fakegpu: rank %d: %s\n", rank(), message.c_str());
  std::abort();
}

int fault(const char* name) {
  static const auto& faults = *new std::vector<Fault>(read_faults());
  const long call = [&] {
    const std::lock_guard lock(counts().mutex);
    return ++counts().calls[name];
  }();
  for (const Fault& fault : faults) {
    if (fault.call != name || fault.nth != call) continue;
    std::fprintf(stderr, "fakegpu: rank %d: call %ld of %s: injected %s\n", rank(), call, name, fault.error.c_str());
    while (fault.error == "hang") pause();
    return std::atoi(fault.error.c_str());
  }
  return 0;
}

bool ignore_this_wait(const char* name, int stream) {
  static const char* ignored = setting("LINEAR_DDP_FAKE_IGNORE_WAIT");
  static std::atomic<int> waits = 0;
  if (ignored == nullptr) return false;
  const int wait = ++waits;
  const bool lists = std::strcmp(ignored, "list") == 0, ignores = wait == std::atoi(ignored);
  if (lists || ignores) {
    std::fprintf(stderr, "fakegpu: rank %d: wait %d%s: %s, for stream %d, in %s\n", rank(), wait,
                 ignores ? " is ignored" : "", name, stream, calling_code().c_str());
  }
  return ignores;
}

void count_object(const char* kind, int difference) {
  const std::lock_guard lock(counts().mutex);
  if ((counts().objects[kind] += difference) < 0) die(std::string("more of kind ") + kind + " released than made");
}

}  // namespace fakegpu
