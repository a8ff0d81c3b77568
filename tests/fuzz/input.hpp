#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ddp::fuzz {

/// Takes numbers off a few bits, so that one input also stands for how it is read.
class Choices {
 public:
  explicit Choices(std::uint32_t bits) : bits_(bits) {}
  /// A number below `count`.
  std::uint32_t below(std::uint32_t count) {
    const std::uint32_t chosen = bits_ % count;
    bits_ /= count;
    return chosen;
  }
  bool yes() { return below(2) == 1; }

 private:
  std::uint32_t bits_;
};

/// An input of the fuzzer is a file, and is read in the usual way: so the files of the other tests are seeds as they
/// are. An input that begins with the byte F8, with which no file of these formats begins but by chance, has four bytes
/// of choices behind it, little-endian, and then the file.
struct Input {
  Input(const std::uint8_t* data, std::size_t size);

  Choices choices{0};
  std::span<const std::uint8_t> file;
};

/// A file of the input's, there while this lives.
class InputFile {
 public:
  explicit InputFile(std::span<const std::uint8_t> content, const std::string& name = "input");
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Ends the program with a message when a promise is broken; the fuzzer then keeps the input.
void require(bool holds, const std::string& promise);

}  // namespace ddp::fuzz
