#pragma once

#include <cstdint>

#include <linear_ddp/data/input_file.hpp>
#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// Bytes [begin, end) of a text, in which a rank's records begin, and what is before them.
struct TextShare {
  std::int64_t begin = 0, end = 0;
  std::int64_t line = 1;       ///< in which `begin` is
  bool inside_quotes = false;  ///< there are so many quotes before that one is open
  std::int64_t line_ends = 0;  ///< in the share
};

/// Byte behind the byte order mark that Excel writes. Throws UseError for UTF-16.
[[nodiscard]] std::int64_t begin_of_text(const InputFile& file);

/// Collective. Shares out the bytes from `begin` on, which is in line `line`. Each rank reads its own once.
[[nodiscard]] TextShare share_text(const World& world, const InputFile& file, std::int64_t begin, std::int64_t line);

}  // namespace ddp
