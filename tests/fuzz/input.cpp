#include "fuzz/input.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "support/temporary_folder.hpp"

namespace ddp::fuzz {

Input::Input(const std::uint8_t* data, std::size_t size) : file(data, size) {
  constexpr std::uint8_t mark = 0xF8;
  constexpr std::size_t head_bytes = 5;
  if (size < head_bytes || data[0] != mark) return;
  choices = Choices(std::uint32_t{data[1]} | std::uint32_t{data[2]} << 8U | std::uint32_t{data[3]} << 16U |
                    std::uint32_t{data[4]} << 24U);
  file = file.subspan(head_bytes);
}

InputFile::InputFile(std::span<const std::uint8_t> content, const std::string& name) {
  static const test::TemporaryFolder folder;  // in TMPDIR, which tests/fuzz/run has in memory
  path_ = folder / name;
  const int descriptor = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  require(descriptor >= 0 && write(descriptor, content.data(), content.size()) == std::ssize(content) &&
              close(descriptor) == 0,
          "the input becomes a file");
}

InputFile::~InputFile() {
  unlink(path_.c_str());
}

void require(bool holds, const std::string& promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise.c_str());
  std::abort();
}

}  // namespace ddp::fuzz
