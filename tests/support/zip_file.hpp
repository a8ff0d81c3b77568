#pragma once

#include <zlib.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace ddp::test {

/// A file to put into a ZIP archive; the last fields lie, if they are to.
struct ZipEntry {
  std::string name, content;
  bool deflates = true;
  unsigned method = 8, flags = 0;
  std::int64_t said_size = -1;  ///< else the content's
};

inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

inline std::string deflated(const std::string& content) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// A ZIP archive as sections 4.3.7 to 4.3.16 of its specification have it.
inline std::string zip(const std::vector<ZipEntry>& entries) {
  std::string archive, directory;
  for (const ZipEntry& entry : entries) {
    const std::string data = entry.deflates ? deflated(entry.content) : entry.content;
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(entry.content.data()), entry.content.size());
    const auto size = entry.said_size < 0 ? entry.content.size() : static_cast<std::size_t>(entry.said_size);
    const std::string common = little(20, 2) + little(entry.flags, 2) + little(entry.deflates ? entry.method : 0, 2) +
                               little(0, 4) + little(crc, 4) + little(data.size(), 4) + little(size, 4) +
                               little(entry.name.size(), 2) + little(0, 2);
    directory +=
        "PK\1\2" + little(20, 2) + common + little(0, 8) + little(0, 2) + little(archive.size(), 4) + entry.name;
    archive += "PK\3\4" + common + entry.name + data;
  }
  const std::string count = little(entries.size(), 2);
  return archive + directory + "PK\5\6" + little(0, 4) + count + count + little(directory.size(), 4) +
         little(archive.size(), 4) + little(0, 2);
}

}  // namespace ddp::test
