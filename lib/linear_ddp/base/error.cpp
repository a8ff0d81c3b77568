#include <linear_ddp/base/error.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace ddp {

void fail(const std::string& attempt, const std::string& cause, const std::string& remedy,
          std::source_location where) {
  std::string_view file = where.file_name();
  file.remove_prefix(file.find_last_of('/') + 1);  // npos + 1 is 0
  throw Error(Status::failed, fmt::format("could not {}: {}{}{} [{}:{}]", attempt, cause, remedy.empty() ? "" : "; ",
                                          remedy, file, where.line()));
}

void fail_errno(const std::string& attempt, const std::string& remedy, std::source_location where) {
  fail(attempt, std::generic_category().message(errno), remedy, where);
}

}  // namespace ddp
