#pragma once

#include <linear_ddp/data/table.hpp>

namespace ddp::app {

/// What is learned: numbers, one class of two, one class of several.
enum class Task { regression, binary, multiclass };
[[nodiscard]] const char* name_of(Task task);

/// Throws AgreedError when the table's classes do not fit the task, naming them. Every rank has the same classes.
void require_classes(Task task, const TableShare& share);

}  // namespace ddp::app
