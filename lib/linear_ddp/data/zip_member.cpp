#include <linear_ddp/data/zip_member.hpp>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <new>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

enum Method : std::uint32_t { stored = 0, deflated = 8 };

constexpr std::int64_t most_bytes_of_one = 1032;  // that deflate can make

[[noreturn]] void refuse(const std::string& name, const std::string& cause) {
  throw UseError(fmt::format("{}: {}", name, cause));
}

std::uint32_t crc_of(std::uint32_t before, std::span<const char> bytes) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(crc32_z(before, data, bytes.size()));
}

void require_crc(const std::string& name, std::uint32_t expected, std::uint32_t found) {
  if (found == expected) return;
  refuse(name,
         fmt::format("the data are damaged: their CRC-32 is {:08x}, expected {:08x}; write or copy the file again",
                     found, expected));
}

class InflatedMember final : public ByteSource {
 public:
  InflatedMember(std::string name, const InputFile& file, const ZipMember& member)
      : ByteSource(std::move(name), member.size),
        file_(file),
        next_(find_zip_data(file, member)),
        end_(next_ + member.compressed_size),
        expected_crc_(member.crc),
        in_(static_cast<std::size_t>(
            std::clamp<std::int64_t>(member.compressed_size, 1, static_cast<std::int64_t>(read_block_bytes)))) {
    constexpr int without_zlib_header = -MAX_WBITS;
    if (inflateInit2(&stream_, without_zlib_header) != Z_OK) throw std::bad_alloc();
  }
  ~InflatedMember() override { inflateEnd(&stream_); }

  void read_all(std::int64_t offset, std::span<char> bytes) override {
    skip_to(offset);
    fill(bytes);
  }

  void finish() override {
    skip_to(size());
    char surplus = 0;
    if (!ended_ && inflate_into(std::span(&surplus, 1)) > 0) refuse(name(), "it inflates to more" + than_said());
    if (stream_.avail_in > 0 || next_ < end_) refuse(name(), "bytes follow the end of its compressed data");
    require_crc(name(), expected_crc_, crc_);
  }

 private:
  [[nodiscard]] std::string than_said() const {
    return fmt::format(" than the {} bytes that the archive's directory says", size());
  }

  void skip_to(std::int64_t offset) {
    if (offset < at_) fail("read " + name(), "its bytes are asked for a second time");
    std::vector<char> skipped(
        static_cast<std::size_t>(std::min<std::int64_t>(offset - at_, static_cast<std::int64_t>(read_block_bytes))));
    while (at_ < offset) {
      const auto left = static_cast<std::size_t>(offset - at_);
      fill(std::span(skipped).first(std::min(left, skipped.size())));
    }
  }

  void fill(std::span<char> bytes) {
    const std::size_t got = inflate_into(bytes);
    crc_ = crc_of(crc_, bytes.first(got));
    at_ += static_cast<std::int64_t>(got);
    if (got < bytes.size()) refuse(name(), fmt::format("it inflates to {} bytes, less", at_) + than_said());
  }

  /// How many bytes it could make: fewer than asked for only at the data's end.
  std::size_t inflate_into(std::span<char> bytes) {
    std::size_t done = 0;
    while (done < bytes.size() && !ended_) {
      if (stream_.avail_in == 0 && next_ < end_) read_block();  // zlib may hold the last bytes already
      const auto room = std::min<std::size_t>(bytes.size() - done, read_block_bytes);
      stream_.next_out = reinterpret_cast<Bytef*>(bytes.data() + done);
      stream_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status == Z_BUF_ERROR && next_ == end_) {
        refuse(name(), "its compressed data do not end within the bytes that the directory gives them");
      }
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) refuse_damage();
      done += room - stream_.avail_out;
      ended_ = status == Z_STREAM_END;
    }
    return done;
  }

  void read_block() {
    const auto bytes = static_cast<std::size_t>(std::min<std::int64_t>(end_ - next_, std::ssize(in_)));
    file_.read_all(next_, std::span(in_).first(bytes));
    next_ += static_cast<std::int64_t>(bytes);
    stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
    stream_.avail_in = static_cast<uInt>(bytes);
  }

  [[noreturn]] void refuse_damage() const {
    refuse(name(), fmt::format("the compressed data are damaged near byte {} of the file: {}", next_ - stream_.avail_in,
                               stream_.msg != nullptr ? stream_.msg : "they need a dictionary"));
  }

  const InputFile& file_;
  std::int64_t next_, end_;  ///< of the compressed bytes that are not read
  std::uint32_t expected_crc_, crc_ = 0;
  std::int64_t at_ = 0;  ///< bytes made so far
  bool ended_ = false;
  std::vector<char> in_;
  z_stream stream_{};
};

}  // namespace

std::unique_ptr<ByteSource> open_zip_member(std::string name, const InputFile& file, const ZipMember& member) {
  constexpr std::uint32_t encrypted = 1;
  if ((member.flags & encrypted) != 0) refuse(name, "it is encrypted; write the archive without a password");
  if (member.method == stored) {
    if (member.compressed_size == member.size) {
      return std::make_unique<FilePart>(std::move(name), file, find_zip_data(file, member), member.size);
    }
    refuse(name, fmt::format("it is not compressed, but has {} bytes in the file for {}", member.compressed_size,
                             member.size));
  }
  if (member.method != deflated) {
    refuse(name, fmt::format("its compression method {} is unknown; numpy.savez and numpy.savez_compressed use 0 "
                             "(none) and 8 (deflate)",
                             member.method));
  }
  if (member.size / most_bytes_of_one > member.compressed_size) {
    refuse(name, fmt::format("{} compressed bytes cannot inflate to the {} that the directory says",
                             member.compressed_size, member.size));
  }
  return std::make_unique<InflatedMember>(std::move(name), file, member);
}

void require_zip_crc(const World& world, const std::string& name, const InputFile& file, const ZipMember& member) {
  const auto begin_of = [&](int rank) { return share_begin(member.size, rank, world.size()); };
  const auto own = agree(world, [&] {
    std::uint32_t crc = 0;
    if (member.method != stored) return crc;
    const std::int64_t data = find_zip_data(file, member);
    std::vector<char> buffer(read_block_bytes);
    for (std::int64_t at = begin_of(world.rank()); at < begin_of(world.rank() + 1);) {
      const auto bytes = std::min<std::int64_t>(begin_of(world.rank() + 1) - at, std::ssize(buffer));
      const auto block = std::span(buffer).first(static_cast<std::size_t>(bytes));
      file.read_all(data + at, block);
      crc = crc_of(crc, block);
      at += bytes;
    }
    return crc;
  });
  const auto crcs = all_gather(world, std::int64_t{own});
  agree(world, [&] {
    uLong whole = 0;
    for (int rank = 0; rank < world.size(); ++rank) {
      const auto part = static_cast<uLong>(crcs[static_cast<std::size_t>(rank)]);
      whole = crc32_combine(whole, part, static_cast<z_off_t>(begin_of(rank + 1) - begin_of(rank)));
    }
    if (member.method == stored) require_crc(name, member.crc, static_cast<std::uint32_t>(whole));
  });
}

}  // namespace ddp
