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

  ArrayLayout parse() {
    ArrayLayout layout;
    std::vector<std::string_view> keys;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      if (std::find(keys.begin(), keys.end(), key) != keys.end())
        refuse(fmt::format("the key {} only once", excerpt(key)));
      keys.push_back(key);
      expect(':');
      if (key == "descr")
        descr(layout);
      else if (key == "fortran_order")
        layout.fortran_order = boolean();
      else if (key == "shape")
        layout.shape = shape();
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
    return layout;
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

  void descr(ArrayLayout& layout) {
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
    layout.type = std::string(type);
    layout.decoder = *decoder;
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

ArrayLayout read_npy_header(ByteSource& source) {
  constexpr std::uint32_t longest_header_bytes = 64 << 10;
  constexpr std::int64_t least_bytes = 12;
  std::array<char, least_bytes> start{};
  const auto byte = [&](std::size_t index) { return std::uint32_t{static_cast<unsigned char>(start[index])}; };
  if (source.size() >= least_bytes) source.read_all(0, std::span(start).first(10));
  if (std::string_view(start.data(), 6) != "\x93NUMPY") {
    throw UseError(
        fmt::format("{}: this is not a .npy file: it does not begin with \\x93NUMPY and a header", source.name()));
  }
  if (byte(6) < 1 || byte(6) > 3) {
    throw UseError(fmt::format("{}: .npy version {}.{} is unknown; versions 1, 2 and 3 are read", source.name(),
                               byte(6), byte(7)));
  }
  std::uint32_t length = byte(8) | byte(9) << 8U;
  std::int64_t begin = 10;
  if (byte(6) > 1) {
    source.read_all(begin, std::span(start).subspan(10));
    length |= byte(10) << 16U | byte(11) << 24U;
    begin = 12;
  }
  if (length > longest_header_bytes || begin + length > source.size()) {
    throw UseError(
        fmt::format("{}: the .npy header says that it has {} bytes; the file has {} and the longest header is {}",
                    source.name(), length, source.size(), longest_header_bytes));
  }
  std::string text(length, '\0');
  source.read_all(begin, text);
  ArrayLayout layout = HeaderLiteral(source.name(), text).parse();
  layout.data_begin = begin + length;
  return layout;
}

}  // namespace ddp
