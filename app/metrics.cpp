#include "metrics.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/agree.hpp>

namespace ddp::app {

namespace {

/// The bytes of a file up to the end of its last whole line.
::off_t whole_lines(int file) {
  ::off_t end = ::lseek(file, 0, SEEK_END);
  for (char last = 0; end > 0 && ::pread(file, &last, 1, end - 1) == 1 && last != '\n';) --end;
  return end;
}

}  // namespace

Metrics::Metrics(const std::string& path, bool goes_on, const std::string& option) : name_(option + " " + path) {
  std::error_code ignored;  // fopen tells better
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, ignored);
  }
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) fail_errno("write " + name_, "give a file in a folder you may write to");
  file_.reset(fdopen(descriptor, "w"));
  if (!file_) fail_errno("write " + name_);
  if (goes_on && ::lseek(descriptor, 0, SEEK_CUR) == 0) {  // a pipe has no place to go on from
    const ::off_t end = whole_lines(descriptor);
    if (ftruncate(descriptor, end) != 0 || ::lseek(descriptor, end, SEEK_SET) != end) fail_errno("go on in " + name_);
    return;
  }
  struct stat status {};
  is_own_ = fstat(descriptor, &status) == 0 && !(S_ISREG(status.st_mode) && status.st_size > 0);
}

void Metrics::start(const nlohmann::ordered_json& event) {
  if (!is_own_ && ftruncate(fileno(file_.get()), 0) != 0) fail_errno("empty " + name_);
  is_own_ = true;
  write(event);
}

void Metrics::write_failure(const nlohmann::ordered_json& event) {
  if (is_own_) write(event);
}

void Metrics::write(const nlohmann::ordered_json& event) {
  if (!file_) return;
  const std::string line = event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0) {
    fail_errno("write " + name_, "is the disk full?");
  }
}

Metrics open_metrics(const World& world, const std::string& path, bool goes_on, const std::string& option) {
  return agree(world, [&] { return world.rank() != 0 || path.empty() ? Metrics{} : Metrics(path, goes_on, option); });
}

}  // namespace ddp::app
