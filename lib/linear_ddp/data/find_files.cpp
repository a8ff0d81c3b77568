#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/prepare.hpp>

namespace ddp {
namespace {

bool is_digit(char c) {
  return '0' <= c && c <= '9';
}

/// The digits a text begins with, without leading zeros; taken off.
std::string_view take_number(std::string_view& text) {
  while (text.size() > 1 && text[0] == '0' && is_digit(text[1])) text.remove_prefix(1);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = text.substr(0, digits);
  text.remove_prefix(digits);
  return number;
}

/// Numbers in the names count as numbers.
bool natural_less(const std::string& one, const std::string& other) {
  std::string_view a = one, b = other;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const auto first = take_number(a), second = take_number(b);
      if (first.size() != second.size()) return first.size() < second.size();
      if (first != second) return first < second;
    } else {
      if (a[0] != b[0]) return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() != b.empty()) return a.empty();
  return one < other;  // part-01 and part-1
}

}  // namespace

std::vector<std::string> find_files(const std::string& path) {
  std::error_code ignored;
  if (path.find_first_of("*?[") == path.npos || std::filesystem::exists(path, ignored)) return {path};
  glob_t found{};
  const int status = glob(path.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &found);
  const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&found, globfree);
  if (status == GLOB_NOSPACE) throw std::bad_alloc();
  if (status == GLOB_ABORTED) throw UseError(fmt::format("{}: a folder of this pattern could not be read", path));
  if (status != 0) throw UseError(fmt::format("{}: no file matches this pattern", path));
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::sort(files.begin(), files.end(), natural_less);
  return files;
}

}  // namespace ddp
