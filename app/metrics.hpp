#pragma once

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include <linear_ddp/launch/world.hpp>

namespace ddp::app {

/// A JSON object a line (RFC 8259: a number that is not finite becomes null), shortest numbers that read back the same,
/// flushed by line. Default-constructed it writes nowhere.
class Metrics {
 public:
  Metrics() = default;
  /// Opens the file, made with its folders when missing. What an earlier run wrote stays until `start`; or, when this
  /// run goes on from that one, for good, but for a line that it was killed in the middle of. Throws Error.
  explicit Metrics(const std::string& path, bool goes_on = false, const std::string& option = "--metrics");
  /// The first event, of what is this run's from now on.
  void start(const nlohmann::ordered_json& event);
  /// Throws Error when the line cannot be written (a full disk).
  void write(const nlohmann::ordered_json& event);
  /// As write, unless the file still holds an earlier run's events.
  void write_failure(const nlohmann::ordered_json& event);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string name_;  // "--metrics FILE"
  std::unique_ptr<std::FILE, Close> file_;
  bool is_own_ = true;
};

/// Collective, before any work: what cannot be written must not cost a training. Rank 0's are written to `path` (empty:
/// nowhere), other ranks' nowhere. `goes_on`: as for Metrics.
[[nodiscard]] Metrics open_metrics(const World& world, const std::string& path, bool goes_on = false,
                                   const std::string& option = "--metrics");

}  // namespace ddp::app
