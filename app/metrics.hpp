#pragma once

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace ddp::app {

/// A JSON object a line (RFC 8259: a number that is not finite becomes null), shortest numbers that read back the same,
/// flushed by line. Default-constructed it writes nowhere.
class Metrics {
 public:
  Metrics() = default;
  /// Makes missing folders and an empty file. Throws Error.
  explicit Metrics(const std::string& path);
  /// Throws Error when the line cannot be written (a full disk).
  void write(const nlohmann::ordered_json& event);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace ddp::app
