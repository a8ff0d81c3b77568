#include <linear_ddp/base/atomic_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>

#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

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

/// Beside the target, so that a rename suffices. Process numbers repeat on other hosts of a shared file system.
fs::path temporary_name(const fs::path& target) {
  constexpr std::size_t longest = 200;  // names end at 255 bytes
  std::random_device random;
  return folder_of(target) /
         fmt::format(".{}.{:08x}{:08x}.tmp", target.filename().string().substr(0, longest), random(), random());
}

/// A file beside the target until it takes the target's name; without commit() nothing of it is left.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target)
      : target_(target),
        path_(temporary_name(target)),
        attempt_("write " + target.string()),
        file_(path_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW) {
    if (!file_.valid()) fail_errno(attempt_, "check that the folder may be written to");
    try {
      take_permissions();
    } catch (...) {
      ::unlink(path_.c_str());
      throw;
    }
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
    const FileDescriptor folder_file(folder_of(target_), O_RDONLY | O_DIRECTORY);
    if (!folder_file.valid()) fail_errno(attempt_);
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail_errno(attempt_);
    committed_ = true;
    flush(folder_file);
  }

 private:
  /// Of the file that will be replaced; a new one has what the umask leaves.
  void take_permissions() const {
    struct stat there {};
    if (::stat(target_.c_str(), &there) != 0) return;
    if (::fchmod(file_.get(), there.st_mode & 07777U) != 0) fail_errno(attempt_);
  }

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

/// Where a file of this name is, or would be: a rename would replace a link instead of what it leads to.
fs::path behind_links(fs::path path) {
  std::error_code error;
  while (fs::is_symlink(fs::symlink_status(path, error))) path = path.parent_path() / fs::read_symlink(path, error);
  return path;
}

/// Makes the folders above the target, and refuses what rename would destroy or choke on.
fs::path prepared(const std::string& path) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (there.type() == fs::file_type::none) fail("write " + path, error.message());  // also links in a circle
  const fs::path target = behind_links(path);
  if (!target.has_filename() || fs::is_directory(there)) fail("write " + path, "it is a folder", "name a file");
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    fail("write " + path, "it is not a regular file and would be replaced", "name a file");
  }
  fs::create_directories(folder_of(target), error);
  if (error) fail("make the folder " + folder_of(target).string(), error.message(), "needed to write " + path);
  return target;
}

}  // namespace

void write_file_atomically(const std::string& path, const std::vector<std::span<const std::byte>>& parts) {
  write_parts_atomically(path, [&](const FilePart& write) {
    for (const auto part : parts) write(part);
  });
}

void write_parts_atomically(const std::string& path, const std::function<void(const FilePart&)>& fill) {
  TemporaryFile file(prepared(path));
  fill([&](std::span<const std::byte> part) { file.write(part); });
  file.commit();
}

void require_writable(const std::string& path) {
  TemporaryFile probe(prepared(path));
}

}  // namespace ddp
