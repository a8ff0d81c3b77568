#include <linear_ddp/data/npy_header.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>

namespace ddp {
namespace {

/// The header is the literal of a Python dict with three known keys; nothing else is accepted.
class HeaderLiteral {
 public:
  HeaderLiteral(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    std::vector<std::string_view> keys;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      if (std::find(keys.begin(), keys.end(), key) != keys.end())
        refuse(fmt::format("the key {} only once", excerpt(key)));
      keys.push_back(key);
      expect(':');
      if (key == "descr")
        descr(header);
      else if (key == "fortran_order")
        header.fortran_order = boolean();
      else if (key == "shape")
        header.shape = shape();
      else
        refuse("only the keys 'descr', 'fortran_order' and 'shape'");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    blanks();
    if (at_ != text_.size()) refuse("nothing behind the dict");
    if (keys.size() != 3) refuse("the keys 'descr', 'fortran_order' and 'shape'");
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& expected) const {
    throw UseError(fmt::format("{}: the .npy header is not valid at its character {}, {}: expected {}", path_, at_ + 1,
                               excerpt(text_.substr(std::min(at_, text_.size()))), expected));
  }

  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char character) {
    blanks();
    if (at_ == text_.size() || text_[at_] != character) return false;
    ++at_;
    return true;
  }
  void expect(char character) {
    if (!accept(character)) refuse(fmt::format("'{}'", character));
  }
  bool accept_word(std::string_view word) {
    blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string_view string() {
    blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : text_.npos;
    if (end == text_.npos) refuse("a string");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    if (accept_word("True")) return true;
    if (!accept_word("False")) refuse("True or False");
    return false;
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    expect('(');
    for (bool comma = true; !accept(')'); comma = accept(',')) {
      if (!comma) refuse("',' or ')'");
      blanks();
      std::uint64_t size = 0;  // unsigned: from_chars takes no minus sign
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc{} || size > INT64_MAX) refuse("a size below 2^63");
      at_ = static_cast<std::size_t>(end - text_.data());
      sizes.push_back(static_cast<std::int64_t>(size));
      // (8) is a number to Python, (8,) is a shape.
      if (sizes.size() == 1 && text_.substr(at_).starts_with(')')) refuse("',' after the only size");
    }
    return sizes;
  }

  void descr(NpyHeader& header) {
    blanks();
    if (text_.substr(at_).starts_with('[')) refuse_type(text_.substr(at_), "a structured dtype");
    const std::string_view name = string();
    const std::string_view type = name.substr(std::min<std::size_t>(1, name.size()));
    const auto decoder = name.empty() ? std::nullopt : npy_decoder(type, name[0]);
    if (!decoder) {
      refuse_type(name, type.starts_with('c')                            ? "complex numbers"
                        : type.starts_with('O')                          ? "Python objects"
                        : type.starts_with('U') || type.starts_with('S') ? "texts"
                                                                         : "not a known number");
    }
    header.type = std::string(type);
    header.decoder = *decoder;
  }

  [[noreturn]] void refuse_type(std::string_view name, std::string_view meaning) const {
    throw UseError(
        fmt::format("{}: the array's dtype {} ({}) cannot be used; convert it to bool, int8 to uint64, float16, "
                    "float32 or float64",
                    path_, excerpt(name), meaning));
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

NpyHeader read_npy_header(const InputFile& file) {
  constexpr std::uint32_t longest_header_bytes = 64 << 10;
  std::array<char, 12> start{};
  const std::size_t got = file.read(0, start);
  const auto byte = [&](std::size_t index) { return std::uint32_t{static_cast<unsigned char>(start[index])}; };
  if (got < start.size() || std::string_view(start.data(), 6) != "\x93NUMPY") {
    throw UseError(
        fmt::format("{}: this is not a .npy file: it does not begin with \\x93NUMPY and a header", file.path()));
  }
  if (byte(6) < 1 || byte(6) > 3) {
    throw UseError(
        fmt::format("{}: .npy version {}.{} is unknown; versions 1, 2 and 3 are read", file.path(), byte(6), byte(7)));
  }
  const std::uint32_t short_length = byte(8) | byte(9) << 8U;
  const std::uint32_t length = byte(6) == 1 ? short_length : short_length | byte(10) << 16U | byte(11) << 24U;
  const std::int64_t begin = byte(6) == 1 ? 10 : 12;
  if (length > longest_header_bytes || begin + length > file.size()) {
    throw UseError(
        fmt::format("{}: the .npy header says that it has {} bytes; the file has {} and the longest header is {}",
                    file.path(), length, file.size(), longest_header_bytes));
  }
  std::string text(length, '\0');
  file.read_all(begin, text);
  NpyHeader header = HeaderLiteral(file.path(), text).parse();
  header.data_begin = begin + length;
  return header;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  if (shape.size() == 1) return fmt::format("({},)", shape[0]);
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace ddp
