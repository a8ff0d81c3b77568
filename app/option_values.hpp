#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/optim/lr_schedule.hpp>
#include "options.hpp"

/// Values of options from their texts. All throw UseError that names the option, the text and what is accepted.
namespace ddp::app {

/// All of the text, as a whole number from `least` to `most`.
template <std::integral T>
[[nodiscard]] T parse_whole(const std::string& option, const std::string& text, T least,
                            T most = std::numeric_limits<T>::max()) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    throw UseError(fmt::format("{}: {:.40} is beyond what this program counts to, {}", option, text, most));
  }
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    throw UseError(fmt::format("{}: '{:.40}' is no whole number {}", option, text,
                               most == std::numeric_limits<T>::max() ? fmt::format("of {} or more", least)
                                                                     : fmt::format("from {} to {}", least, most)));
  }
  return value;
}

/// All of the text, as a number that float holds, not below `least`.
[[nodiscard]] double parse_number(const std::string& option, const std::string& text, double least);

/// Numbers of 0 or more, separated by commas.
[[nodiscard]] std::vector<double> parse_numbers(const std::string& option, const std::string& text);

/// Penalties: numbers of 0 or more, or LO:HI:N, of which the logarithms are evenly spaced.
[[nodiscard]] std::vector<double> parse_path(const std::string& option, const std::string& text);

/// NAME=PATH,NAME=PATH,…: lr, weight-decay, l2, with a path of values each, as parse_path takes it.
[[nodiscard]] std::vector<std::pair<std::string, std::vector<double>>> parse_sweep(const std::string& option,
                                                                                   const std::string& text);

/// A schedule's name, and its numbers behind colons; `steps` of 0 stands for all steps of the training.
[[nodiscard]] LrSchedule parse_schedule(const std::string& option, const std::string& text);

/// none, fp16, bf16, or powersgd with its numbers behind colons.
[[nodiscard]] Compression parse_compression(const std::string& option, const std::string& text);

/// A number of steps; or of seconds, minutes or hours: 30s, 10m, 2h.
void parse_every(const std::string& option, const std::string& text, CheckpointOptions& options);

/// One character, or \t or tab.
[[nodiscard]] char parse_character(const std::string& option, const std::string& text);

/// "a,b" is a and b.
[[nodiscard]] std::vector<std::string> split_names(const std::string& list, char separator = ',');

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

/// What `text` stands for; `not_yet` are documented choices that this version does not have.
template <class T>
[[nodiscard]] T choose(const std::string& option, const std::string& text, const Choices<T>& choices,
                       const std::vector<std::string>& not_yet = {}) {
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices) {
    if (name == text) return choice;
    names.push_back(name);
  }
  bool known = false;
  for (const auto& name : not_yet) known |= name == text;
  throw UseError(fmt::format("{} {:.40} is {}; accepted: {}", option, text,
                             known ? fmt::format("not there yet in linear_ddp {}", version()) : "unknown",
                             fmt::join(names, ", ")));
}

}  // namespace ddp::app
