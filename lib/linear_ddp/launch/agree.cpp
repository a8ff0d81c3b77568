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
  std::string message = world.rank() == root ? world.prefix() + failure->what() : std::string{};
  message = broadcast(world, message, root);
  if (failed == world.size() && failed > 1) message += " (and so on every rank)";
  else if (failed > 1) message += fmt::format(" (and {} more ranks)", failed - 1);
  throw AgreedError(static_cast<Status>(*first), message);
}

}  // namespace ddp
