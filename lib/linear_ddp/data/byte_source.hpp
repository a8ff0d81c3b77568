#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <linear_ddp/data/input_file.hpp>

namespace ddp {

/// Bytes that are read from the front to the back: a part of a file, which can be read again, or what a compressed part
/// of one holds.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// As messages begin: the file, and what in it.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }

  /// Fills all of `bytes`, which lie within size(). What was read, or skipped, is not read again.
  virtual void read_all(std::int64_t offset, std::span<char> bytes) = 0;
  /// Checks what only the end can tell.
  virtual void finish() {}
  /// Whether what was read can be read again.
  [[nodiscard]] virtual bool rereadable() const { return false; }
  /// A hint: these bytes will be read soon.
  virtual void will_need(std::int64_t /*offset*/, std::int64_t /*bytes*/) const {}

 protected:
  ByteSource(std::string name, std::int64_t size) : name_(std::move(name)), size_(size) {}

 private:
  std::string name_;
  std::int64_t size_;
};

/// `size` bytes of a file from `begin` on, which the file must have.
class FilePart final : public ByteSource {
 public:
  FilePart(std::string name, const InputFile& file, std::int64_t begin, std::int64_t size)
      : ByteSource(std::move(name), size), file_(file), begin_(begin) {}
  void read_all(std::int64_t offset, std::span<char> bytes) override { file_.read_all(begin_ + offset, bytes); }
  [[nodiscard]] bool rereadable() const override { return true; }
  void will_need(std::int64_t offset, std::int64_t bytes) const override { file_.will_need(begin_ + offset, bytes); }

 private:
  const InputFile& file_;
  std::int64_t begin_;
};

}  // namespace ddp
