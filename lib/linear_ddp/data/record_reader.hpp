#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <linear_ddp/data/input_file.hpp>

namespace ddp {

/// Bytes that may be read behind a record's text, whatever they are, for those who look at many at once.
inline constexpr std::size_t record_padding = 64;

/// A line of a text table, or several when a quoted field goes over line ends.
struct Record {
  std::string_view text;  ///< without its line end
  std::int64_t line = 0;  ///< number of its first line in the file, from 1
  bool quoted = false;    ///< a quote is in it
};

[[nodiscard]] std::int64_t count_character(std::string_view text, char wanted);

/// Ends of lines in a text that follows the byte `previous`. LF, CR and CR LF each end one line; the LF of a CR LF adds
/// nothing, even where a share or a block begins with it.
[[nodiscard]] std::int64_t count_line_ends(std::string_view text, char previous);

/// Reads records one after the other. Each quote opens or closes a quoted part (RFC 4180: a doubled quote does both),
/// so whether a byte is inside quotes is the parity of the quotes before it, and a rank can start in the middle of a
/// file.
class RecordReader {
 public:
  /// Starts at a byte that is in line `line`. What comes first may be the rest of a record.
  RecordReader(const InputFile& file, std::int64_t offset, std::int64_t line, bool inside_quotes = false);

  /// Before the first call of next(): a quote is a character like another.
  void ignore_quotes() noexcept { finders_[quote].character = '\n'; }  // which is never before the line's end

  /// Byte at which the next record begins.
  [[nodiscard]] std::int64_t offset() const noexcept { return base_ + static_cast<std::int64_t>(begin_); }
  [[nodiscard]] std::int64_t line() const noexcept { return line_; }
  /// The byte before offset(), 0 at the file's begin.
  [[nodiscard]] char previous() const noexcept { return previous_; }

  /// False at the file's end. The record's text lives until the next call. Throws UseError for a quote that is not
  /// closed, and for a record of more than 256 MiB.
  bool next(Record& record);

 private:
  /// Where `character` is next; end_ when no more is in the buffer.
  struct Finder {
    char character;
    std::size_t at = 0;
  };
  enum Wanted { quote, line_feed, carriage_return };

  void search(Finder& finder, std::size_t from);
  std::size_t find(Wanted wanted, std::size_t from);
  /// Reads a block more, and lets the finders go on behind what was there before.
  bool refill();

  const InputFile& file_;
  std::vector<char> buffer_;  ///< [begin_, end_) is not consumed; byte 0 is byte base_ of the file; padding behind
  std::size_t begin_ = 0, end_ = 0;
  std::int64_t base_, line_;
  char previous_ = 0;
  bool inside_quotes_;
  std::array<Finder, 3> finders_{Finder{'"'}, Finder{'\n'}, Finder{'\r'}};
};

}  // namespace ddp
