#include <linear_ddp/data/zip_directory.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>

namespace ddp {
namespace {

// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7 to 4.3.16 and 4.5.3
constexpr std::int64_t local_header_bytes = 30, entry_bytes = 46, end_bytes = 22, locator_bytes = 20, end64_bytes = 56;
constexpr std::int64_t longest_comment = 0xFFFF;
constexpr std::uint64_t in_zip64 = 0xFFFFFFFF;

[[noreturn]] void refuse(const InputFile& file, std::int64_t byte, const std::string& found) {
  throw UseError(fmt::format("{}, byte {}: {}; is the ZIP archive complete?", file.path(), byte, found));
}

/// Little-endian numbers out of a text.
class Fields {
 public:
  explicit Fields(std::string_view text) : text_(text) {}
  [[nodiscard]] std::uint64_t number(std::size_t offset, std::size_t bytes) const {
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;) value = value << 8U | static_cast<unsigned char>(text_[offset + i]);
    return value;
  }
  [[nodiscard]] std::uint32_t two(std::size_t offset) const { return static_cast<std::uint32_t>(number(offset, 2)); }
  [[nodiscard]] std::uint64_t four(std::size_t offset) const { return number(offset, 4); }
  [[nodiscard]] std::uint64_t eight(std::size_t offset) const { return number(offset, 8); }
  [[nodiscard]] bool signed_with(std::string_view signature) const { return text_.starts_with(signature); }

 private:
  std::string_view text_;
};

std::string read_text(const InputFile& file, std::int64_t offset, std::int64_t bytes) {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  file.read_all(offset, text);
  return text;
}

/// Where the central directory is, and how many members it has.
struct Directory {
  std::uint64_t begin = 0, bytes = 0, members = 0;
  std::int64_t end = 0;  ///< where what is behind it begins
};

void refuse_parts(const InputFile& file) {
  throw UseError(fmt::format("{}: this is one part of a ZIP archive in several; join them", file.path()));
}

/// The record is the last in the file, but for a comment whose length it tells.
std::int64_t find_end_record(const InputFile& file) {
  const std::int64_t begin = std::max<std::int64_t>(0, file.size() - end_bytes - longest_comment);
  const std::string tail = read_text(file, begin, file.size() - begin);
  for (std::size_t at = tail.rfind("PK\5\6"); at != tail.npos && at > 0; at = tail.rfind("PK\5\6", at - 1)) {
    const std::size_t left = tail.size() - at;
    if (left >= end_bytes && Fields(std::string_view(tail).substr(at)).two(20) == left - end_bytes) {
      return begin + static_cast<std::int64_t>(at);
    }
  }
  throw UseError(fmt::format("{}: this is no ZIP archive, or not a complete one: no directory ends it", file.path()));
}

Directory find_directory(const InputFile& file) {
  Directory directory;
  directory.end = find_end_record(file);
  const std::string record = read_text(file, directory.end, end_bytes);
  const Fields fields(record);
  if (fields.two(4) != fields.two(6) || fields.two(8) != fields.two(10)) refuse_parts(file);
  directory.members = fields.two(10);
  directory.bytes = fields.four(12);
  directory.begin = fields.four(16);

  const std::int64_t locator_begin = directory.end - locator_bytes;
  if (locator_begin < end64_bytes) return directory;
  const std::string locator = read_text(file, locator_begin, locator_bytes);
  if (!Fields(locator).signed_with("PK\6\7")) return directory;
  const std::uint64_t end64 = Fields(locator).eight(8);
  if (end64 > static_cast<std::uint64_t>(locator_begin - end64_bytes)) {
    refuse(file, locator_begin, fmt::format("the ZIP64 record is said to begin at byte {}", end64));
  }
  directory.end = static_cast<std::int64_t>(end64);
  const std::string record64 = read_text(file, directory.end, end64_bytes);
  const Fields fields64(record64);
  if (!fields64.signed_with("PK\6\6")) refuse(file, directory.end, "there is no ZIP64 record");
  if (fields64.four(16) != fields64.four(20) || fields64.eight(24) != fields64.eight(32)) refuse_parts(file);
  directory.members = fields64.eight(32);
  directory.bytes = fields64.eight(40);
  directory.begin = fields64.eight(48);
  return directory;
}

/// Numbers that do not fit in 32 bits are in an extra field, in this order, each only where it is needed.
void take_zip64(std::string_view extra, std::initializer_list<std::uint64_t*> values) {
  while (extra.size() >= 4) {
    const Fields field(extra);
    const std::size_t bytes = std::min<std::size_t>(field.two(2), extra.size() - 4);
    std::size_t at = 4;
    for (std::uint64_t* value : values) {
      if (field.two(0) != 1 || *value != in_zip64 || at + 8 > 4 + bytes) continue;
      *value = field.eight(at);
      at += 8;
    }
    extra.remove_prefix(4 + bytes);
  }
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const InputFile& file) {
  const Directory directory = find_directory(file);
  const auto end = static_cast<std::uint64_t>(directory.end);
  if (directory.begin > end || directory.bytes != end - directory.begin) {
    refuse(file, directory.end,
           fmt::format("the directory is said to have {} bytes from byte {} on, and to end here", directory.bytes,
                       directory.begin));
  }
  const std::string text =
      read_text(file, static_cast<std::int64_t>(directory.begin), static_cast<std::int64_t>(directory.bytes));
  std::vector<ZipMember> members;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const auto byte = static_cast<std::int64_t>(directory.begin + at);
    const Fields entry(rest);
    if (rest.size() < entry_bytes || !entry.signed_with("PK\1\2")) refuse(file, byte, "there is no directory entry");
    const std::size_t name_bytes = entry.two(28), extra_bytes = entry.two(30), comment_bytes = entry.two(32);
    const std::size_t bytes = entry_bytes + name_bytes + extra_bytes + comment_bytes;
    if (rest.size() < bytes) refuse(file, byte, "a directory entry is longer than the directory");
    std::uint64_t size = entry.four(24), compressed_size = entry.four(20), header_begin = entry.four(42);
    take_zip64(rest.substr(entry_bytes + name_bytes, extra_bytes), {&size, &compressed_size, &header_begin});
    ZipMember member;
    member.name = std::string(rest.substr(entry_bytes, name_bytes));
    member.flags = entry.two(8);
    member.method = entry.two(10);
    member.crc = static_cast<std::uint32_t>(entry.four(16));
    if (header_begin > directory.begin || compressed_size > directory.begin - header_begin || size > INT64_MAX) {
      refuse(file, byte,
             fmt::format("member {} is said to have {} bytes, {} in the file, from byte {} on, before the directory",
                         excerpt(member.name), size, compressed_size, header_begin));
    }
    member.size = static_cast<std::int64_t>(size);
    member.compressed_size = static_cast<std::int64_t>(compressed_size);
    member.header_begin = static_cast<std::int64_t>(header_begin);
    members.push_back(std::move(member));
    at += bytes;
  }
  if (members.size() != directory.members) {
    refuse(file, directory.end, fmt::format("{} members are said, {} found", directory.members, members.size()));
  }
  return members;
}

std::int64_t find_zip_data(const InputFile& file, const ZipMember& member) {
  const std::int64_t behind = member.header_begin + local_header_bytes;
  const std::string header = behind <= file.size() ? read_text(file, member.header_begin, local_header_bytes) : "";
  const Fields fields(header);
  if (!fields.signed_with("PK\3\4")) {
    refuse(file, member.header_begin, fmt::format("member {} has no header there", excerpt(member.name)));
  }
  const std::int64_t begin = behind + fields.two(26) + fields.two(28);
  if (begin + member.compressed_size > file.size()) {
    refuse(file, begin,
           fmt::format("member {} has {} bytes from here on, which the file has not", excerpt(member.name),
                       member.compressed_size));
  }
  return begin;
}

}  // namespace ddp
