#pragma once

#include <functional>
#include <string>

#include <linear_ddp/data/table.hpp>
#include "option_values.hpp"

namespace ddp::app {

/// Of --format, by their names.
[[nodiscard]] const Choices<FileFormat>& formats();

/// Throws UseError through `refuse_given`, which takes options, those that the format of --data has no use for.
void refuse_for_other_formats(const std::string& data, const FileOptions& file,
                              const std::function<void(const char* names, const std::string& why)>& refuse_given);

}  // namespace ddp::app
