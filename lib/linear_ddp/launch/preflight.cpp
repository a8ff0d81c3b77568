#include <linear_ddp/launch/preflight.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

/// "0-2,5" of {0, 1, 2, 5}.
std::string ranges(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

void require_agreement(const World& world, const Facts& facts, const std::string& headline, const std::string& remedy) {
  using Json = nlohmann::json;
  const auto everyones = all_gather(world, Json(facts).dump(-1, ' ', false, Json::error_handler_t::replace));
  if (std::all_of(everyones.begin(), everyones.end(), [&](const auto& text) { return text == everyones[0]; })) return;

  std::vector<std::string> order;  // of the facts, as first met
  std::map<std::string, std::map<std::string, std::vector<int>>> ranks_by_value;
  for (std::size_t rank = 0; rank < everyones.size(); ++rank) {
    for (const auto& [fact, value] : Json::parse(everyones[rank]).get<Facts>()) {
      if (!ranks_by_value.contains(fact)) order.push_back(fact);
      ranks_by_value[fact][value].push_back(static_cast<int>(rank));
    }
  }
  std::string table;
  for (const auto& fact : order) {
    const auto& values = ranks_by_value[fact];
    std::size_t known = 0;
    for (const auto& [value, ranks] : values) known += ranks.size();
    if (values.size() == 1 && known == everyones.size()) continue;
    for (const auto& [value, ranks] : values) {
      table += fmt::format("\n  {:<18} {:<40} on rank{} {}", fact, value, ranks.size() > 1 ? "s" : "", ranges(ranks));
    }
  }
  throw AgreedError(Status::failed, headline + ":" + table + "\n" + remedy);
}

}  // namespace ddp
