#include "runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/hash.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp::app {

std::string choose_backend(const std::string& asked, const Device& device) {
  const std::string fitting = device.kind() == "cuda" ? "nccl" : "mpi";
  if (asked == "auto" || asked == fitting) return fitting;
  throw UseError(
      fmt::format("--backend {} does not go with --device {}: NCCL moves GPU memory, MPI host memory; use "
                  "--backend {}",
                  asked, device.kind(), fitting));
}

std::unique_ptr<ProcessGroup> make_group(const std::string& backend, const World& world, Device& device,
                                         Watchdog& watchdog, std::int64_t timeout_s) {
  if (backend == "nccl") return make_nccl_group(world, device, watchdog, std::chrono::seconds(timeout_s));
  return make_mpi_group(world, watchdog);
}

std::unique_ptr<CommunicationHook> make_hook(const Compression& compression, Device& device, Model& model) {
  switch (compression.kind) {
    case Compression::Kind::none:
      return nullptr;
    case Compression::Kind::fp16:
      return make_half_hook(device, HalfType::fp16);
    case Compression::Kind::bf16:
      return make_half_hook(device, HalfType::bf16);
    case Compression::Kind::powersgd:
      return make_powersgd_hook(device, model, compression.powersgd);
  }
  return nullptr;
}

void warn_of(const Compression& compression, std::int64_t steps) {
  const std::int64_t start = compression.powersgd.start_step;
  if (compression.kind != Compression::Kind::powersgd || steps > start) return;
  fmt::print(stderr, "linear_ddp: note: --compress {}: begins after {} steps, and there are only {}\n",
             compression.text, start, steps);
}

std::vector<std::pair<std::string, std::string>> version_facts(const Device& device) {
  std::vector<std::pair<std::string, std::string>> facts{{"linear_ddp", std::string(version())},
                                                         {"device", std::string(device.kind())}};
  if (device.kind() != "cuda") return facts;
  const CudaVisibility cuda = visible_cuda_devices();
  if (cuda.gpus.empty()) fail("ask for the GPU once more", cuda.why_none);
  facts.emplace_back("NCCL", nccl_version());
  facts.emplace_back("CUDA runtime", cuda.runtime_version);
  facts.emplace_back("NVIDIA driver", cuda.driver_version);
  return facts;
}

std::vector<std::pair<std::string, std::string>> run_facts(const Device& device, const TrainOptions& options) {
  auto facts = version_facts(device);
  const auto json = options.to_json();
  for (const auto& [name, value] : json.items()) {
    const bool for_rank_0_alone = name == "save" || name == "metrics" || name == "quiet";
    if (!for_rank_0_alone) facts.emplace_back("--" + name, value.dump());
  }
  return facts;
}

std::uint64_t agreed_hash_of(const World& world, std::span<const double> weight, std::span<const double> bias) {
  Hash hash;
  hash.add(std::as_bytes(weight));
  hash.add(std::as_bytes(bias));
  const auto hashes = all_gather(world, static_cast<std::int64_t>(hash.value()));
  const auto other = std::find_if(hashes.begin(), hashes.end(), [&](std::int64_t of) { return of != hashes[0]; });
  if (other != hashes.end()) {
    throw AgreedError(Status::failed,
                      fmt::format("rank {} has another solution than rank 0; its arithmetic is not that "
                                  "of the others: use hosts of one kind and the same libraries",
                                  other - hashes.begin()));
  }
  return hash.value();
}

std::string describe_ranks(const World& world) {
  const auto hosts = all_gather(world, world.host());
  const std::size_t count = std::set(hosts.begin(), hosts.end()).size();
  return fmt::format("{} rank{} on {} host{}", world.size(), world.size() == 1 ? "" : "s", count,
                     count == 1 ? "" : "s");
}

}  // namespace ddp::app
