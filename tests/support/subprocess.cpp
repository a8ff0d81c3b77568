#include "support/subprocess.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

namespace ddp::test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& attempt, int error) {
  throw std::runtime_error(attempt + ": " + std::strerror(error));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

struct Pipe {
  explicit Pipe(std::array<int, 2> ends = open()) : read_end(ends[0]), write_end(ends[1]) {}
  static std::array<int, 2> open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe", errno);
    return ends;
  }
  Descriptor read_end, write_end;
};

std::vector<std::string> changed_environment(const Environment& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const auto same_name = [&](const auto& change) { return text.starts_with(change.first + "="); };
    if (std::ranges::none_of(changes, same_name)) result.push_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (value) result.push_back(name + "=" + *value);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

pid_t start(std::vector<std::string> argv, const Environment& changes, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  auto variables = changed_environment(changes);
  pid_t pid = -1;
  const int error =
      posix_spawnp(&pid, argv.at(0).c_str(), &actions, &attributes, pointers(argv).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail("start " + argv[0], error);
  return pid;
}

/// Open MPI puts each rank into a process group of its own, so a signal to the program's group would miss them. They
/// stay in its session.
void kill_session(pid_t leader) {
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir("/proc"), closedir);
  while (const dirent* entry = processes ? readdir(processes.get()) : nullptr) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid > 0 && getsid(pid) == leader) kill(pid, SIGKILL);
  }
}

/// Reads both streams as they come: a program that fills one pipe while we wait at the other would never end.
/// False at the deadline.
bool read_until(Clock::time_point deadline, const Pipe& out, const Pipe& err, Outcome& outcome) {
  std::array<pollfd, 2> streams{pollfd{out.read_end.get(), POLLIN, 0}, pollfd{err.read_end.get(), POLLIN, 0}};
  const std::array<std::string*, 2> texts{&outcome.out, &outcome.err};
  std::array<char, 1 << 16> buffer{};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    if (poll(streams.data(), streams.size(), static_cast<int>(left)) < 0) {
      if (errno == EINTR) continue;
      fail("poll", errno);
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].fd < 0 || streams[i].revents == 0) continue;
      const ssize_t bytes = read(streams[i].fd, buffer.data(), buffer.size());
      if (bytes > 0) texts[i]->append(buffer.data(), static_cast<std::size_t>(bytes));
      if (bytes == 0) streams[i].fd = -1;
    }
  }
  return true;
}

std::optional<int> wait_until(Clock::time_point deadline, pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

}  // namespace

Outcome run(const std::vector<std::string>& argv, const Environment& environment, std::chrono::seconds limit) {
  const auto begin = Clock::now();
  Pipe out, err;
  const pid_t pid = start(argv, environment, out.write_end.get(), err.write_end.get());
  out.write_end.close();
  err.write_end.close();

  Outcome outcome{};
  std::optional<int> status;
  if (read_until(begin + limit, out, err, outcome)) status = wait_until(begin + limit, pid);
  if (!status) {
    outcome.timed_out = true;
    kill_session(pid);
    read_until(Clock::now() + std::chrono::seconds(5), out, err, outcome);
    status = wait_until(Clock::time_point::max(), pid);
  }
  outcome.status = WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
  outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return outcome;
}

std::vector<std::string> mpirun(int ranks, const std::vector<std::string>& arguments) {
  std::vector<std::string> argv{LINEAR_DDP_MPIEXEC, "-np", std::to_string(ranks), LINEAR_DDP_PROGRAM};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

}  // namespace ddp::test
