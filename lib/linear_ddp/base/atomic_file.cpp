#include <linear_ddp/base/atomic_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

namespace fs = std::filesystem;

class FileDescriptor {
 public:
  FileDescriptor(const fs::path& path, int flags) : value_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] bool valid() const noexcept { return value_ >= 0; }
  [[nodiscard]] int get() const noexcept { return value_; }

 private:
  int value_;
};

/// A file beside the target until it takes the target's name; without commit() nothing of it is left.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target)
      : target_(target),
        // The process number keeps two runs apart; a leftover of a killed run with our number is overwritten.
        path_(folder() / fmt::format(".{}.{}.tmp", target.filename().string(), ::getpid())),
        attempt_("write " + target.string()),
        file_(path_, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW) {
    if (!file_.valid()) fail_errno(attempt_, "check that the folder may be written to");
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!committed_) ::unlink(path_.c_str());
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ::ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail_errno(attempt_, "what was there before is untouched; check the free space");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  void commit() {
    flush(file_);
    // Opened before the rename, so that the little that can still fail after it is the flush itself.
    const FileDescriptor folder_file(folder(), O_RDONLY | O_DIRECTORY);
    if (!folder_file.valid()) fail_errno(attempt_);
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail_errno(attempt_);
    committed_ = true;
    flush(folder_file);
  }

 private:
  [[nodiscard]] fs::path folder() const { return target_.has_parent_path() ? target_.parent_path() : fs::path("."); }

  void flush(const FileDescriptor& file) const {
    int status = 0;
    do {
      status = ::fsync(file.get());
    } while (status != 0 && errno == EINTR);
    // EINVAL: this file system cannot flush such a file (a folder on some network file systems); there is nothing to
    // wait for.
    if (status != 0 && errno != EINVAL) fail_errno("flush " + target_.string() + " to disk");
  }

  fs::path target_, path_;
  std::string attempt_;
  FileDescriptor file_;
  bool committed_ = false;
};

/// Makes the folders above the target, and refuses what rename would destroy or choke on.
fs::path prepared(const std::string& path) {
  const fs::path target(path);
  std::error_code error;
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), error);
  if (error) fail("make the folder " + target.parent_path().string(), error.message(), "needed to write " + path);

  const fs::file_status there = fs::status(target, error);
  if (there.type() == fs::file_type::none) fail("write " + path, error.message());
  if (!target.has_filename() || fs::is_directory(there)) fail("write " + path, "it is a folder", "name a file");
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    fail("write " + path, "it is not a regular file and would be replaced", "name a file");
  }
  return target;
}

}  // namespace

void write_file_atomically(const std::string& path, const std::vector<std::span<const std::byte>>& parts) {
  TemporaryFile file(prepared(path));
  for (const auto part : parts) file.write(part);
  file.commit();
}

void require_writable(const std::string& path) {
  TemporaryFile probe(prepared(path));
}

}  // namespace ddp
