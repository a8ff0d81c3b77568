#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>

#include "option_values.hpp"

/// How an option is made known to CLI11, and what becomes of its text.
namespace ddp::app {

/// What an option does with its text.
using Take = std::function<void(const std::string& option, const std::string& text)>;

/// An empty text is refused for all of them: `--data "$UNSET"` must not mean the default.
inline void add(CLI::App& app, const char* name, const char* type, const char* help, Take take) {
  const auto parse = [name, take = std::move(take)](const std::string& text) {
    if (text.empty()) throw UseError(fmt::format("{}: its value is empty", name));
    take(name, text);
  };
  app.add_option_function<std::string>(name, parse, help)->type_name(type);
}

template <class Value>  // std::int64_t, or an optional one
Take whole(Value& value, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  return [&value, most](const auto& option, const auto& text) {
    value = parse_whole<std::int64_t>(option, text, 1, most);
  };
}

template <class Value>  // double, or an optional one
Take number(Value& value, double least = 0) {
  return [&value, least](const auto& option, const auto& text) { value = parse_number(option, text, least); };
}

inline Take text(std::string& value) {
  return [&value](const auto&, const auto& text) { value = text; };
}

inline Take names(std::vector<std::string>& value) {
  return [&value](const auto&, const auto& text) { value = split_names(text); };
}

inline Take character(char& value) {
  return [&value](const auto& option, const auto& text) { value = parse_character(option, text); };
}

template <class T>
Take choice(T& value, Choices<T> choices, std::vector<std::string> not_yet = {}) {
  return [&value, choices = std::move(choices), not_yet = std::move(not_yet)](const auto& option, const auto& text) {
    value = choose(option, text, choices, not_yet);
  };
}

/// Of words that stand for themselves.
inline Take word(std::string& value, const std::vector<std::string>& words, std::vector<std::string> not_yet = {}) {
  Choices<std::string> choices;
  for (const auto& one : words) choices.emplace_back(one, one);
  return choice(value, std::move(choices), std::move(not_yet));
}

}  // namespace ddp::app
