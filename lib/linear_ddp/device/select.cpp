#include <linear_ddp/device/select.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

using GpuOnHost = std::pair<std::string, std::string>;  // host, UUID

[[noreturn]] void refuse(const std::string& message) {
  throw AgreedError(Status::wrong_use, message);
}

/// "rank 3", "ranks 0 and 2", "ranks 0, 1 and 5": of many only the first ones.
std::string name_ranks(const std::vector<std::size_t>& ranks) {
  constexpr std::size_t most = 8;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  if (ranks.size() > most) {
    return fmt::format("ranks {} and {} more", fmt::join(ranks.begin(), ranks.begin() + most, ", "),
                       ranks.size() - most);
  }
  return fmt::format("ranks {} and {}", fmt::join(ranks.begin(), ranks.end() - 1, ", "), ranks.back());
}

std::size_t ordinal_of(const RankGpus& rank) {
  return static_cast<std::size_t>(rank.local_rank) % rank.gpus.size();
}

/// "ranks 0 and 1 share GPU … on node7"; empty when each rank has one of its own. Verb: "share".
std::string shared_gpu(const std::vector<RankGpus>& ranks, const char* verb) {
  std::map<GpuOnHost, std::vector<std::size_t>> users;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    users[{ranks[rank].host, ranks[rank].gpus[ordinal_of(ranks[rank])].uuid}].push_back(rank);
  }
  const auto shared = std::count_if(users.begin(), users.end(), [](const auto& gpu) { return gpu.second.size() > 1; });
  if (shared == 0) return {};
  const auto first = std::min_element(users.begin(), users.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.size() < 2, a.second[0]) < std::pair(b.second.size() < 2, b.second[0]);
  });
  const std::string others = shared > 1 ? fmt::format(" (and so with {} more)", shared - 1) : "";
  return fmt::format("{} {} GPU {} on {}{}", name_ranks(first->second), verb, first->first.second, first->first.first,
                     others);
}

std::size_t distinct_gpus(const std::vector<RankGpus>& ranks) {
  std::set<GpuOnHost> gpus;
  for (const RankGpus& rank : ranks) {
    for (const auto& gpu : rank.gpus) gpus.emplace(rank.host, gpu.uuid);
  }
  return gpus.size();
}

/// Some ranks see GPUs, and others none.
[[noreturn]] void refuse_mixture(const std::vector<RankGpus>& ranks, const std::vector<std::size_t>& blind) {
  const RankGpus& first = ranks[blind[0]];
  refuse(
      fmt::format("{} {} no GPU ({}: {}), but {} of {} ranks do; make GPUs visible to every rank, or use --device cpu",
                  name_ranks(blind), blind.size() == 1 ? "sees" : "see", first.host, first.why_none,
                  ranks.size() - blind.size(), ranks.size()));
}

/// "4 × NVIDIA H200".
std::string gpus_text(const std::vector<RankGpus>& ranks) {
  std::map<std::string, std::set<GpuOnHost>> gpus;
  for (const RankGpus& rank : ranks) {
    const auto& gpu = rank.gpus[ordinal_of(rank)];
    gpus[gpu.name].emplace(rank.host, gpu.uuid);
  }
  std::string text;
  for (const auto& [name, ones] : gpus) text += fmt::format("{}{} × {}", text.empty() ? "" : " + ", ones.size(), name);
  return text;
}

/// Changes a rule, so only one spelling does.
Sharing sharing_in_environment() {
  const char* share = std::getenv("LINEAR_DDP_SHARE_GPUS");
  return share != nullptr && std::string_view(share) == "1" ? Sharing::allowed : Sharing::refused;
}

/// What all ranks were asked for, alike.
struct Asked {
  DeviceRequest request;
  Sharing sharing;
};

std::string to_text(const RankGpus& rank, const Asked& asked) {
  auto gpus = nlohmann::json::array();
  for (const auto& gpu : rank.gpus) gpus.push_back({gpu.uuid, gpu.name});
  return nlohmann::json{{"request", static_cast<int>(asked.request)},
                        {"sharing", static_cast<int>(asked.sharing)},
                        {"host", rank.host},
                        {"local_rank", rank.local_rank},
                        {"gpus", gpus},
                        {"why_none", rank.why_none}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

RankGpus from_text(const std::string& text, const Asked& asked) {
  const auto json = nlohmann::json::parse(text);
  if (json.at("request") != static_cast<int>(asked.request)) {
    throw AgreedError(Status::failed, "the ranks do not agree on --device; start all with the same options");
  }
  if (json.at("sharing") != static_cast<int>(asked.sharing)) {
    throw AgreedError(Status::failed,
                      "the ranks do not agree on LINEAR_DDP_SHARE_GPUS; set it for all of them or none");
  }
  RankGpus rank{json.at("host"), json.at("local_rank"), {}, json.at("why_none")};
  for (const auto& gpu : json.at("gpus"))
    rank.gpus.push_back({gpu.at(0).get<std::string>(), gpu.at(1).get<std::string>()});
  return rank;
}

}  // namespace

DeviceChoice choose_devices(const std::vector<RankGpus>& ranks, DeviceRequest request, Sharing sharing) {
  if (request == DeviceRequest::cpu) return {{}, "CPU, as asked for"};

  std::vector<std::size_t> blind;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].gpus.empty()) blind.push_back(rank);
  }
  const bool must = request == DeviceRequest::cuda;
  if (blind.size() == ranks.size()) {
    const std::string why = fmt::format("no CUDA device visible ({})", ranks[0].why_none);
    if (must) refuse(why + "; mend that, or use --device cpu");
    return {{}, "CPU: " + why};
  }
  if (!blind.empty()) refuse_mixture(ranks, blind);

  const std::string shared = shared_gpu(ranks, must ? "share" : "would share");
  if (!shared.empty() && sharing == Sharing::refused) {
    const std::string advice = fmt::format("use -np {} or more GPUs", distinct_gpus(ranks));
    if (must) refuse(fmt::format("{}; {}, or --device cpu", shared, advice));
    return {{}, fmt::format("CPU: {}; {}", shared, advice)};
  }
  DeviceChoice choice{{}, gpus_text(ranks) + (shared.empty() ? ", one a rank" : ", shared, for tests")};
  for (const RankGpus& rank : ranks) choice.ordinals.push_back(static_cast<int>(ordinal_of(rank)));
  return choice;
}

SelectedDevice select_device(const World& world, DeviceRequest request) {
  const Asked asked{request, sharing_in_environment()};
  RankGpus own{world.host(), world.local_rank(), {}, {}};
  if (request != DeviceRequest::cpu) {  // which does without the time that asking the driver takes
    CudaVisibility visible = visible_cuda_devices();
    own.gpus = std::move(visible.gpus);
    own.why_none = std::move(visible.why_none);
  }
  std::vector<RankGpus> ranks;
  for (const std::string& text : all_gather(world, to_text(own, asked))) ranks.push_back(from_text(text, asked));
  const DeviceChoice choice = choose_devices(ranks, request, asked.sharing);
  if (choice.ordinals.empty()) return {make_cpu_device(), choice.reason};
  const int ordinal = choice.ordinals[static_cast<std::size_t>(world.rank())];
  return {agree(world, [&] { return make_cuda_device(ordinal); }), choice.reason};
}

}  // namespace ddp
