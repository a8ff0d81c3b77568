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

std::vector<double> parse_numbers(const std::string& option, const std::string& text) {
  std::vector<double> numbers;
  for (const auto& one : split_names(text)) numbers.push_back(parse_number(option, one, 0));
  return numbers;
}

std::vector<double> parse_path(const std::string& option, const std::string& text) {
  constexpr std::int64_t most = 1000;
  const auto parts = split_names(text, ':');
  if (parts.size() == 1) return parse_numbers(option, text);
  if (parts.size() != 3) throw UseError(fmt::format("{}: '{:.40}' is not of the form LO:HI:N", option, text));
  const double low = parse_number(option, parts[0], std::numeric_limits<double>::min());
  const double high = parse_number(option, parts[1], low);
  const auto count = parse_whole<std::int64_t>(option, parts[2], 2, most);
  std::vector<double> path(static_cast<std::size_t>(count), high);
  const double first = std::log10(low), step = (std::log10(high) - first) / static_cast<double>(count - 1);
  for (std::int64_t i = 0; i + 1 < count; ++i) {
    path[static_cast<std::size_t>(i)] = std::pow(10, first + static_cast<double>(i) * step);
  }
  return path;
}

std::vector<std::pair<std::string, std::vector<double>>> parse_sweep(const std::string& option,
                                                                     const std::string& text) {
  std::vector<std::pair<std::string, std::string>> paths;
  for (const auto& part : split_names(text)) {
    const std::size_t equals = part.find('=');
    if (equals == part.npos) {
      if (paths.empty()) throw UseError(fmt::format("{}: '{:.40}' is not of the form NAME=X,...", option, text));
      paths.back().second += "," + part;
      continue;
    }
    const std::string name = part.substr(0, equals);
    static_cast<void>(choose<int>(option, name, {{"lr", 0}, {"weight-decay", 0}, {"l2", 0}}));
    if (std::any_of(paths.begin(), paths.end(), [&](const auto& path) { return path.first == name; })) {
      throw UseError(fmt::format("{}: {} is there twice", option, name));
    }
    paths.emplace_back(name, part.substr(equals + 1));
  }
  constexpr std::size_t most = 1024;  // LinearShape's
  std::vector<std::pair<std::string, std::vector<double>>> sweep;
  std::size_t heads = 1;
  for (const auto& [name, path] : paths) {
    sweep.emplace_back(name, parse_path(fmt::format("{} {}", option, name), path));
    heads *= sweep.back().second.size();
    if (heads > most) throw UseError(fmt::format("{}: {} heads are too many; there can be {}", option, heads, most));
  }
  return sweep;
}

LrSchedule parse_schedule(const std::string& option, const std::string& text) {
  const auto parts = split_names(text, ':');
  const auto refuse = [&](const char* form) {
    throw UseError(fmt::format("{}: '{:.40}' is not of the form {}", option, text, form));
  };
  const auto given = [&](std::size_t part) { return parts.size() > part; };
  const auto number = [&](std::size_t part) { return parse_number(option, parts[part], 0); };
  const auto steps = [&](std::size_t part) { return parse_whole<std::int64_t>(option, parts[part], 1); };
  using Kind = LrSchedule::Kind;
  LrSchedule schedule;
  schedule.kind = choose<Kind>(
      option, parts[0],
      {{"constant", Kind::constant}, {"step", Kind::step}, {"cosine", Kind::cosine}, {"linear", Kind::linear}});
  switch (schedule.kind) {
    case Kind::constant:
      if (given(1)) refuse("constant");
      break;
    case Kind::step:
      if (!given(1) || given(3)) refuse("step:SIZE[:GAMMA]");
      schedule.steps = steps(1);
      if (given(2)) schedule.gamma = number(2);
      break;
    case Kind::cosine:
      if (given(3)) refuse("cosine[:STEPS[:ETA_MIN]]");
      schedule.steps = given(1) ? steps(1) : 0;
      if (given(2)) schedule.eta_min = number(2);
      break;
    case Kind::linear:
      if (parts.size() != 4) refuse("linear:START:END:STEPS");
      schedule.start_factor = number(1);
      schedule.end_factor = number(2);
      schedule.steps = steps(3);
      break;
  }
  return schedule;
}

Compression parse_compression(const std::string& option, const std::string& text) {
  const auto parts = split_names(text, ':');
  using Kind = Compression::Kind;
  Compression compression;
  compression.text = text;
  compression.kind =
      choose<Kind>(option, parts[0],
                   {{"none", Kind::none}, {"fp16", Kind::fp16}, {"bf16", Kind::bf16}, {"powersgd", Kind::powersgd}});
  if (parts.size() > (compression.kind == Kind::powersgd ? 3 : 1)) {
    throw UseError(
        fmt::format("{}: '{:.40}' is not of the form none, fp16, bf16, powersgd[:RANK[:START]]", option, text));
  }
  if (parts.size() > 1) compression.powersgd.rank = parse_whole<std::int64_t>(option, parts[1], 1);
  if (parts.size() > 2) compression.powersgd.start_step = parse_whole<std::int64_t>(option, parts[2], 1);
  return compression;
}

void parse_every(const std::string& option, const std::string& text, CheckpointOptions& options) {
  constexpr std::int64_t units[] = {1, 60, 3600}, most = 1'000'000;
  const std::size_t unit = std::string("smh").find(text.back());
  if (unit == std::string::npos) {
    options.every_steps = parse_whole<std::int64_t>(option, text, 1);
  } else {
    options.every_s = units[unit] * parse_whole<std::int64_t>(option, text.substr(0, text.size() - 1), 1, most);
  }
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
