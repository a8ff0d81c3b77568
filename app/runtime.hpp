#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/device/select.hpp>
#include <linear_ddp/launch/watchdog.hpp>
#include <linear_ddp/launch/world.hpp>
#include "options.hpp"

namespace ddp::app {

/// "nccl" on GPUs, "mpi" on CPUs. Throws UseError when the one asked for does not fit the device.
[[nodiscard]] std::string choose_backend(const std::string& asked, const Device& device);

/// Collective.
[[nodiscard]] std::unique_ptr<ProcessGroup> make_group(const std::string& backend, const World& world, Device& device,
                                                       Watchdog& watchdog, std::int64_t timeout_s);

/// For --compress; null: none.
[[nodiscard]] std::unique_ptr<CommunicationHook> make_hook(const Compression& compression, Device& device,
                                                           Model& model);

/// Tells a person whose training is too short for it.
void warn_of(const Compression& compression, std::int64_t steps);

/// What the ranks must agree on besides the model: versions of linear_ddp, NCCL, CUDA and the driver, and the device.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> version_facts(const Device& device);

/// The same and all options, but for those of rank 0 alone.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> run_facts(const Device& device,
                                                                         const TrainOptions& options);

/// Collective. Throws AgreedError unless all ranks have the same parameters.
[[nodiscard]] std::uint64_t agreed_hash_of(const World& world, std::span<const double> weight,
                                           std::span<const double> bias);

/// "4 ranks on 2 hosts"; collective.
[[nodiscard]] std::string describe_ranks(const World& world);

}  // namespace ddp::app
