#include <linear_ddp/data/libsvm_parser.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/number.hpp>

namespace ddp {
namespace {

/// Takes the first word off the text; empty when there is none.
std::string_view next_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  const std::size_t end = std::min(text.find_first_of(" \t", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

}  // namespace

void LibsvmParser::parse(const Record& line) {
  std::string_view rest = line.text.substr(0, line.text.find('#'));
  std::string_view word = next_word(rest);
  if (word.empty()) return;
  rows_.labels.push_back(label(line, word));
  const std::size_t begin = rows_.values.size();
  bool sorted = true;
  while (!(word = next_word(rest)).empty()) {
    if (word.starts_with("qid:")) {
      rows_.has_query_ids = true;
      continue;
    }
    const SparseValue next = value(line, word);
    sorted = sorted && (rows_.values.size() == begin || rows_.values.back().index < next.index);
    rows_.values.push_back(next);
    rows_.highest = std::max(rows_.highest, next.index);
  }
  if (!sorted) sort_last_row(line, begin);
  rows_.ends.push_back(rows_.values.size());
}

double LibsvmParser::label(const Record& line, std::string_view word) const {
  const auto [value, fault] = parse_number(word, '.');
  if (fault == NumberFault::none) return value;
  if (word.find(':') != word.npos) refuse(line, fmt::format("it begins with {}, expected a label", excerpt(word)));
  if (word.find(',') != word.npos) {
    refuse(line, fmt::format("the label {} is several; one number is expected", excerpt(word)));
  }
  refuse(line, fmt::format("the label {} is not a finite number", excerpt(word)));
}

SparseValue LibsvmParser::value(const Record& line, std::string_view word) const {
  const std::size_t colon = std::min(word.find(':'), word.size());
  std::uint64_t index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + colon, index);
  const auto [value, fault] = parse_number(word.substr(std::min(colon + 1, word.size())), '.');
  constexpr std::uint64_t highest = 1ULL << 40U;
  if (colon == word.size() || error != std::errc{} || end != word.data() + colon || fault != NumberFault::none ||
      index > highest) {
    refuse(line, fmt::format("{} is not index:value, a whole number from {} on and a finite number", excerpt(word),
                             zero_based_ ? 0 : 1));
  }
  if (index == 0 && !zero_based_) {
    refuse(line, fmt::format("{} has the index 0, but indices start at 1; if they start at 0 in this file, say "
                             "--zero-based",
                             excerpt(word)));
  }
  return {static_cast<std::int64_t>(index), value};
}

void LibsvmParser::sort_last_row(const Record& line, std::size_t begin) {
  const auto first = rows_.values.begin() + static_cast<std::ptrdiff_t>(begin);
  std::sort(first, rows_.values.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  const auto twice =
      std::adjacent_find(first, rows_.values.end(), [](const auto& a, const auto& b) { return a.index == b.index; });
  if (twice != rows_.values.end()) refuse(line, fmt::format("the index {} occurs twice", twice->index));
}

void LibsvmParser::refuse(const Record& line, const std::string& what) const {
  throw UseError(fmt::format("{}, line {}: {}", path_, line.line, what));
}

}  // namespace ddp
