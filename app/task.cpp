#include "task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/number.hpp>

namespace ddp::app {
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
  if (classes.size() < 2)
    refuse(fmt::format("has one class, {}: there is nothing to tell apart", excerpt(std::span(classes))));
  if (task == Task::multiclass) return;
  if (classes.size() != 2) {
    refuse(fmt::format("has {} classes, {}; --task binary is for two: try --task multiclass", classes.size(),
                       excerpt(std::span(classes))));
  }
  // Of 0.5 and 1 the one is more likely a probability than the name of a class.
  const auto is_fraction = [](const std::string& name) {
    const Number number = parse_number(name, '.');
    return number.fault == NumberFault::none && number.value != std::trunc(number.value);
  };
  const auto is_number = [](const std::string& name) { return parse_number(name, '.').fault == NumberFault::none; };
  if (std::all_of(classes.begin(), classes.end(), is_number) &&
      std::any_of(classes.begin(), classes.end(), is_fraction)) {
    refuse(fmt::format("has the classes {}, which are no whole numbers; is it a number? --task regression",
                       excerpt(std::span(classes))));
  }
}

}  // namespace ddp::app
