#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <new>
#include <optional>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/agree.hpp>
#include "commands.hpp"
#include "console.hpp"

namespace {

using ddp::Status;

/// One write a message, so that ranks' messages do not mix.
void report(const std::string& message) {
  const std::string line = "linear_ddp: error: " + message + "\n";
  std::fflush(stdout);
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

/// The watchdog lives on, to see whether leaving MPI ends. `ending`: as in abort_job.
Status run(const ddp::World& world, int argc, char** argv, std::optional<ddp::Watchdog>& watchdog,
           std::atomic_flag& ending) {
  const auto line = ddp::agree(world, [&] { return ddp::app::parse_command_line(argc, argv); });
  if (line.text) {
    if (world.rank() == 0) ddp::app::print_out(*line.text);
    return Status::ok;
  }
  // The watchdog's thread calls MPI_Abort while the main thread sits in MPI: not what FUNNELED promises to work, but
  // the process is about to end, and nothing else ends its peers.
  const auto on_timeout = [prefix = world.prefix(), &ending](const std::string& message) {
    if (ending.test_and_set()) return;
    report(prefix + message);
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Status::timed_out));
  };
  watchdog.emplace(std::chrono::seconds(line.timeout_s()), on_timeout);
  switch (line.command) {
    case ddp::app::Command::train:
      return ddp::app::train(world, line.train, *watchdog);
    case ddp::app::Command::evaluate:
      ddp::app::evaluate_model(world, line.use, *watchdog);
      break;
    case ddp::app::Command::predict:
      ddp::app::predict(world, line.use);
      break;
    case ddp::app::Command::bench:
      ddp::app::bench(world, line.bench, *watchdog);
      break;
    case ddp::app::Command::info:
      ddp::app::info(world, *watchdog);
      break;
  }
  return Status::ok;
}

/// MPI_Finalize waits for the peers.
void leave(std::optional<ddp::World>& world, std::optional<ddp::Watchdog>& watchdog) {
  std::optional<ddp::Watchdog::Watch> watch;
  if (watchdog) watch.emplace(*watchdog, "leaving of MPI", 0);
  world.reset();
}

/// An error of this rank alone: its peers may wait for it, so the job ends here. A rank's end has one cause: whoever of
/// its two threads comes second to `ending` is silent.
int abort_job(const std::optional<ddp::World>& world, std::atomic_flag& ending, Status status,
              const std::string& message) {
  while (ending.test_and_set()) pause();  // the watchdog is about to end the process
  report((world ? world->prefix() : std::string{}) + message);
  if (world && world->size() > 1) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(status));
  return static_cast<int>(status);
}

}  // namespace

int main(int argc, char** argv) {
  // A file-size limit is then an error of write(), told in words, and not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  std::atomic_flag ending;
  std::optional<ddp::Watchdog> watchdog;
  std::optional<ddp::World> world;
  try {
    world.emplace();
    const Status status = run(*world, argc, argv, watchdog, ending);
    leave(world, watchdog);
    return static_cast<int>(status);
  } catch (const ddp::AgreedError& error) {
    if (world->rank() == 0) report(error.what());
    leave(world, watchdog);
    return static_cast<int>(error.status());
  } catch (const ddp::Error& error) {
    return abort_job(world, ending, error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return abort_job(world, ending, Status::failed, "out of memory; use more ranks on more hosts, or smaller batches");
  } catch (const std::exception& error) {
    return abort_job(world, ending, Status::failed, error.what());
  }
}
