#include <linear_ddp/data/record_reader.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include <linear_ddp/base/error.hpp>

#include "kernels/multiversion.hpp"

namespace ddp {
namespace {

/// A quote that is never closed, or a file without lines, must not be drawn into memory as a whole.
constexpr std::size_t longest_record_bytes = 256 << 20;

[[noreturn]] void refuse_open_quote(const InputFile& file, std::int64_t line, std::string_view found) {
  throw UseError(
      fmt::format("{}, line {}: a quoted field that begins in this record is not closed {}; quotes inside a "
                  "field are doubled, and the field is quoted",
                  file.path(), line, found));
}

[[noreturn]] void refuse_long_record(const InputFile& file, std::int64_t line, bool inside_quotes) {
  const std::string limit = fmt::format("within {} MiB", longest_record_bytes >> 20);
  if (inside_quotes) refuse_open_quote(file, line, limit);
  throw UseError(fmt::format("{}, line {}: the line does not end {}; is it a text table?", file.path(), line, limit));
}

}  // namespace

DDP_MULTIVERSION
std::int64_t count_character(std::string_view text, char wanted) {
  // Counts in bytes, as many as fit in a vector; a wider count would have to be widened in each step.
  constexpr std::size_t block = 128;
  std::int64_t total = 0;
  for (; text.size() >= block; text.remove_prefix(block)) {
    std::uint8_t some = 0;
    for (std::size_t i = 0; i < block; ++i) some = static_cast<std::uint8_t>(some + (text[i] == wanted));
    total += some;
  }
  return total + std::count(text.begin(), text.end(), wanted);
}

std::int64_t count_line_ends(std::string_view text, char previous) {
  // A loop that looks at pairs is slow, and few files have a CR.
  std::int64_t ends = count_character(text, '\n');
  const std::int64_t returns = count_character(text, '\r');
  if (returns == 0 && previous != '\r') return ends;
  ends += returns;
  for (const char character : text) {
    if (character == '\n' && previous == '\r') --ends;
    previous = character;
  }
  return ends;
}

RecordReader::RecordReader(const InputFile& file, std::int64_t offset, std::int64_t line, bool inside_quotes)
    : file_(file), base_(offset), line_(line), inside_quotes_(inside_quotes) {
  if (offset > 0 && file.read(offset - 1, std::span(&previous_, 1)) == 0) previous_ = 0;
}

void RecordReader::search(Finder& finder, std::size_t from) {
  const void* found = std::memchr(buffer_.data() + from, finder.character, end_ - from);
  finder.at = found ? static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data()) : end_;
}

std::size_t RecordReader::find(Wanted wanted, std::size_t from) {
  // Nothing is between the last position asked for and `at`, so most calls find their answer there.
  if (finders_[wanted].at < from) search(finders_[wanted], from);
  return finders_[wanted].at;
}

bool RecordReader::refill() {
  if (end_ - begin_ > longest_record_bytes) refuse_long_record(file_, line_, inside_quotes_);
  const std::size_t kept = end_ - begin_;
  if (begin_ > 0 && kept > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, kept);
  base_ += static_cast<std::int64_t>(begin_);
  begin_ = 0;
  const std::int64_t at = base_ + static_cast<std::int64_t>(kept);
  const auto left = static_cast<std::size_t>(std::max<std::int64_t>(file_.size() - at, 0));
  const std::size_t block = std::min(read_block_bytes, left);
  const std::size_t room = kept + block + record_padding;
  if (buffer_.size() < room) buffer_.resize(room);
  end_ = kept + file_.read(at, std::span(buffer_).subspan(kept, block));
  for (Finder& finder : finders_) search(finder, kept);
  return end_ > kept;
}

bool RecordReader::next(Record& record) {
  std::size_t at = begin_;
  std::size_t end = 0;
  record.quoted = inside_quotes_;
  for (;;) {
    const std::size_t next_quote = find(quote, at);
    end = inside_quotes_ ? end_ : std::min(find(line_feed, at), find(carriage_return, at));
    if (next_quote < end) {
      inside_quotes_ = !inside_quotes_;
      record.quoted = true;
      at = next_quote + 1;
      continue;
    }
    if (end < end_) break;
    at = end_ - begin_;  // all before was looked through
    const bool more = refill();
    end = end_;
    if (!more) break;
  }
  if (inside_quotes_) refuse_open_quote(file_, line_, "before the file ends");
  if (begin_ == end_) return false;

  record.text = std::string_view(buffer_.data() + begin_, end - begin_);
  record.line = line_;
  if (record.quoted) line_ += count_line_ends(record.text, previous_);
  if (end < end_) {
    const bool second_half = buffer_[end] == '\n' && end == begin_ && previous_ == '\r';
    if (!second_half) ++line_;
    previous_ = buffer_[end];
    ++end;
  }
  begin_ = end;
  return true;
}

}  // namespace ddp
