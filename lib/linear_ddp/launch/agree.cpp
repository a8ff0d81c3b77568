#include <linear_ddp/launch/agree.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <linear_ddp/launch/collectives.hpp>

namespace ddp {

void agree_on(const World& world, const std::optional<Error>& failure) {
  const auto statuses = all_gather(world, failure ? static_cast<std::int64_t>(failure->status()) : 0);
  const auto failed = std::count_if(statuses.begin(), statuses.end(), [](std::int64_t status) { return status != 0; });
  if (failed == 0) return;

  const auto first = std::find_if(statuses.begin(), statuses.end(), [](std::int64_t status) { return status != 0; });
  const int root = static_cast<int>(first - statuses.begin());
  const std::string cause = broadcast(world, failure ? failure->what() : "", root);
  const auto same = all_gather(world, std::int64_t{failure && failure->what() == cause});
  // What is wrong everywhere (an option, a missing file) is no rank's own fault.
  const bool everywhere = std::count(same.begin(), same.end(), 1) == world.size();
  std::string message = everywhere ? cause : broadcast(world, world.prefix() + cause, root);
  if (!everywhere && failed > 1) {
    message += fmt::format(" (and {} more rank{})", failed - 1, failed == 2 ? "" : "s");
  }
  throw AgreedError(static_cast<Status>(*first), message);
}

}  // namespace ddp
