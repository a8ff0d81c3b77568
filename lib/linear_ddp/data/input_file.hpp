#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ddp {

/// A regular file open for reading, and the size it had when it was opened; what is appended later is not read.
class InputFile {
 public:
  /// Throws UseError with the system's words: no such file, no permission, a directory, a pipe.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }

  /// Fills `bytes` from `offset` on and returns how many were read: fewer than asked for only at the file's end.
  [[nodiscard]] std::size_t read(std::int64_t offset, std::span<char> bytes) const;
  /// Fills all of `bytes`. Throws Error when the file ends before.
  void read_all(std::int64_t offset, std::span<char> bytes) const;
  /// A hint to the system: these bytes will be read soon.
  void will_need(std::int64_t offset, std::int64_t bytes) const noexcept;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

/// How much of a file is asked for at once.
inline constexpr std::size_t read_block_bytes = 256 << 10;

/// ".csv" of "a/B.CSV".
[[nodiscard]] std::string lower_case_extension(const std::string& path);

}  // namespace ddp
