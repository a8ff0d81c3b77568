#include <linear_ddp/data/text_share.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/record_reader.hpp>
#include <linear_ddp/data/table_share.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

struct Counts {
  std::int64_t quotes = 0, line_ends = 0;
};

Counts count(const InputFile& file, std::int64_t begin, std::int64_t end) {
  Counts counts;
  char previous = RecordReader(file, begin, 0).previous();
  std::vector<char> buffer(std::min(read_block_bytes, static_cast<std::size_t>(end - begin)));
  for (std::int64_t at = begin; at < end;) {
    const auto block = std::min(static_cast<std::int64_t>(buffer.size()), end - at);
    const std::string_view text(buffer.data(), static_cast<std::size_t>(block));
    file.read_all(at, std::span(buffer).first(text.size()));
    counts.quotes += count_character(text, '"');
    counts.line_ends += count_line_ends(text, previous);
    previous = text.back();
    at += block;
  }
  return counts;
}

}  // namespace

std::int64_t begin_of_text(const InputFile& file) {
  std::array<char, 3> bytes{};
  const std::string_view start(bytes.data(), file.read(0, bytes));
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF")) {
    throw UseError(fmt::format("{}: this is UTF-16 text; save it as UTF-8", file.path()));
  }
  return start == "\xEF\xBB\xBF" ? 3 : 0;
}

TextShare share_text(const World& world, const InputFile& file, std::int64_t begin, std::int64_t line) {
  const std::int64_t bytes = file.size() - begin;
  TextShare share;
  share.begin = begin + share_begin(bytes, world.rank(), world.size());
  share.end = begin + share_begin(bytes, world.rank() + 1, world.size());
  const Counts counts = agree(world, [&] { return count(file, share.begin, share.end); });
  share.inside_quotes = sum_of_ranks_before(world, counts.quotes) % 2 != 0;
  share.line = line + sum_of_ranks_before(world, counts.line_ends);
  share.line_ends = counts.line_ends;
  return share;
}

}  // namespace ddp
