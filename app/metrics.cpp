#include "metrics.hpp"

#include <filesystem>

#include <linear_ddp/base/error.hpp>

namespace ddp::app {

Metrics::Metrics(const std::string& path) : path_(path) {
  std::error_code ignored;  // fopen tells better
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, ignored);
  }
  file_.reset(std::fopen(path.c_str(), "w"));
  if (!file_) fail_errno("write --metrics " + path, "give a file in a folder you may write to");
}

void Metrics::write(const nlohmann::ordered_json& event) {
  if (!file_) return;
  const std::string line = event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0) {
    fail_errno("write --metrics " + path_, "is the disk full?");
  }
}

}  // namespace ddp::app
