#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include <linear_ddp/data/record_reader.hpp>

namespace ddp {

/// Blanks and tabs around a text do not belong to it, unless they delimit fields.
[[nodiscard]] inline std::string_view trimmed(std::string_view text, char delimiter) {
  const auto blank = [delimiter](char c) { return (c == ' ' || c == '\t') && c != delimiter; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// What a quoted field means.
[[nodiscard]] inline std::string without_doubled_quotes(std::string_view field) {
  std::string text;
  std::size_t begin = 0;  // no erasing: a field may be nothing but quotes, millions of them
  for (std::size_t at = field.find("\"\""); at != field.npos; at = field.find("\"\"", begin)) {
    text += field.substr(begin, at + 1 - begin);
    begin = at + 2;
  }
  return text += field.substr(begin);
}

/// The fields of a record one after the other. Allocates nothing.
class FieldSplitter {
 public:
  FieldSplitter(const Record& record, char delimiter)
      : rest_(record.text), delimiter_(delimiter), quoted_(record.quoted) {}

  /// False after the last field; a record has one field more than it has delimiters.
  bool next(std::string_view& field) {
    if (finished_) return false;
    std::size_t length = 0;
    if (quoted_) [[unlikely]] {
      length = end_of_quoted();
    } else {
      // Fields are short: memchr's call costs more than it saves.
      while (length < rest_.size() && rest_[length] != delimiter_) ++length;
    }
    field = trimmed(rest_.substr(0, length), delimiter_);
    finished_ = length == rest_.size();
    rest_.remove_prefix(finished_ ? length : length + 1);
    if (quoted_) [[unlikely]]
      take_off_quotes(field);
    return true;
  }

  /// What is wrong with the quotes of the fields so far; null when nothing is.
  [[nodiscard]] const char* fault() const noexcept { return fault_; }

 private:
  [[nodiscard]] std::size_t end_of_quoted() const {
    bool inside = false;
    std::size_t length = 0;
    for (; length < rest_.size() && (inside || rest_[length] != delimiter_); ++length) inside ^= rest_[length] == '"';
    return length;
  }

  void take_off_quotes(std::string_view& field) {
    if (field.find('"') == field.npos) return;
    const bool enclosed = field.size() > 1 && field.front() == '"' && field.back() == '"';
    if (enclosed) field = field.substr(1, field.size() - 2);
    bool all_doubled = enclosed;
    for (std::size_t at = field.find('"'); all_doubled && at != field.npos; at = field.find('"', at + 2)) {
      all_doubled = field.substr(at, 2) == "\"\"";
    }
    if (!all_doubled) fault_ = "a quote that neither encloses the field nor is doubled in a quoted one";
    field = trimmed(field, delimiter_);
  }

  std::string_view rest_;
  char delimiter_;
  bool quoted_;
  bool finished_ = false;
  const char* fault_ = nullptr;
};

}  // namespace ddp
