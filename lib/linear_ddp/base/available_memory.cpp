#include <linear_ddp/base/available_memory.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

namespace ddp {
namespace {

constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();

/// The number that follows a word, or begins a file when the word is empty; nothing for "max".
std::optional<std::int64_t> number_behind(const std::string& file, const std::string& word) {
  std::ifstream lines(file);
  for (std::string found; word.empty() || lines >> found;) {
    if (!word.empty() && found != word) continue;
    std::int64_t number = 0;
    return lines >> number ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

std::int64_t left_by_group(const std::string& folder) {
  const auto most = number_behind(folder + "/memory.max", ""), used = number_behind(folder + "/memory.current", "");
  if (!most || !used) return unknown;
  // What it holds of files is given up when something else needs it.
  const auto files = number_behind(folder + "/memory.stat", "file").value_or(0);
  return std::max<std::int64_t>(0, *most - std::max<std::int64_t>(0, *used - files));
}

}  // namespace

std::int64_t available_memory(const std::string& root) {
  constexpr std::int64_t kibibyte = 1024;
  const auto of_host = number_behind(root + "/proc/meminfo", "MemAvailable:");
  std::int64_t available = of_host ? *of_host * kibibyte : unknown;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    // Each group above limits it too.
    for (std::filesystem::path group = line.substr(3); group.has_relative_path(); group = group.parent_path()) {
      available = std::min(available, left_by_group(root + "/sys/fs/cgroup" + group.string()));
    }
  }
  return available;
}

}  // namespace ddp
