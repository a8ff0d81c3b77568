#include "task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <linear_ddp/base/error.hpp>

namespace ddp::app {
namespace {

std::string list(const std::vector<std::string>& classes) {
  constexpr std::size_t shown = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, classes.size()); ++i) {
    text += fmt::format("{}'{:.40}'", i == 0 ? "" : ", ", classes[i]);
  }
  return text + (classes.size() > shown ? ", ..." : "");
}

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

const char* name_of(Task task) {
  return std::array{"regression", "binary", "multiclass"}.at(static_cast<std::size_t>(task));
}

void require_classes(Task task, const TableShare& share) {
  if (task == Task::regression) return;
  const auto refuse = [&](const std::string& why) {
    throw AgreedError(Status::wrong_use,
                      fmt::format("{}: target '{:.40}' {}", share.path, share.target_names.at(0), why));
  };
  const auto& classes = share.labels;
  if (classes.size() < 2) refuse(fmt::format("has one class, {}: there is nothing to tell apart", list(classes)));
  if (task == Task::multiclass) return;
  if (classes.size() != 2) {
    refuse(fmt::format("has {} classes, {}; --task binary is for two: try --task multiclass", classes.size(),
                       list(classes)));
  }
  // Of 0.5 and 1 the one is more likely a probability than the name of a class.
  const auto low = as_number(classes[0]), high = as_number(classes[1]);
  if (low && high && (*low != std::trunc(*low) || *high != std::trunc(*high))) {
    refuse(fmt::format("has the classes {}, which are no whole numbers; is it a number? --task regression",
                       list(classes)));
  }
}

}  // namespace ddp::app
