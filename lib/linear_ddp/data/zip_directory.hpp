#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linear_ddp/data/input_file.hpp>

namespace ddp {

/// A file in a ZIP archive, as the archive's central directory has it. (What precedes the data may lack sizes.)
struct ZipMember {
  std::string name;
  std::uint32_t flags = 0, method = 0, crc = 0;
  std::int64_t compressed_size = 0, size = 0;
  std::int64_t header_begin = 0;
};

/// Throws UseError for what is no ZIP archive, or one in several parts, or whose directory does not fit the file.
[[nodiscard]] std::vector<ZipMember> read_zip_directory(const InputFile& file);

/// Byte at which the member's data begin. Throws UseError unless they lie within the file behind a header of their own.
[[nodiscard]] std::int64_t find_zip_data(const InputFile& file, const ZipMember& member);

}  // namespace ddp
