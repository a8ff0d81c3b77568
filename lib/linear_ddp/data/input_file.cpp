#include <linear_ddp/data/input_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <linear_ddp/base/ascii.hpp>
#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& cause) {
  throw UseError(fmt::format("could not open '{}' for reading: {}", path, cause));
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  // A pipe without a writer would block in open for ever.
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) refuse(path_, std::generic_category().message(errno));
  struct stat status {};
  const int error = fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(status.st_mode)) {
    size_ = status.st_size;
    return;
  }
  close(descriptor_);
  if (error != 0) refuse(path_, std::generic_category().message(error));
  refuse(path_, S_ISDIR(status.st_mode) ? "it is a directory"
                                        : "it is not a regular file, of which each rank could read a part");
}

InputFile::~InputFile() {
  close(descriptor_);
}

std::size_t InputFile::read(std::int64_t offset, std::span<char> bytes) const {
  const std::int64_t left = std::max<std::int64_t>(size_ - offset, 0);
  const std::size_t wanted = std::min(bytes.size(), static_cast<std::size_t>(left));
  std::size_t done = 0;
  while (done < wanted) {
    const ssize_t got = pread(descriptor_, bytes.data() + done, wanted - done, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    const std::string attempt = got > 0 ? std::string{} : fmt::format("read '{}' at byte {}", path_, offset);
    if (got < 0) fail_errno(attempt);
    if (got == 0) fail(attempt, "it became shorter while it was being read");
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void InputFile::read_all(std::int64_t offset, std::span<char> bytes) const {
  if (read(offset, bytes) == bytes.size()) return;
  fail(fmt::format("read {} bytes of '{}' at byte {}", bytes.size(), path_, offset),
       fmt::format("it ends at byte {}", size_));
}

void InputFile::will_need(std::int64_t offset, std::int64_t bytes) const noexcept {
  (void)posix_fadvise(descriptor_, offset, bytes, POSIX_FADV_WILLNEED);  // where it means nothing, nothing is lost
}

std::string lower_case_extension(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  for (char& c : extension) c = ascii_lower(c);
  return extension;
}

}  // namespace ddp
