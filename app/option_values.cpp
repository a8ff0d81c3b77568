#include "option_values.hpp"

#include <algorithm>
#include <cmath>

namespace ddp::app {

double parse_number(const std::string& option, const std::string& text, double least) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(static_cast<float>(value)) ||
      value < least) {
    throw UseError(fmt::format("{}: '{:.40}' is no finite number{}", option, text,
                               std::isfinite(least) ? fmt::format(" of {} or more", least) : ""));
  }
  return value;
}

char parse_character(const std::string& option, const std::string& text) {
  if (text == "\\t" || text == "tab") return '\t';
  if (text.size() != 1) throw UseError(fmt::format("{}: '{:.40}' is not one character (tab: \\t)", option, text));
  return text[0];
}

std::vector<std::string> split_names(const std::string& list, char separator) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(separator, begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

}  // namespace ddp::app
