#include <linear_ddp/data/matrix.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <linear_ddp/base/error.hpp>

namespace ddp {

Matrix::Matrix(std::string name, std::vector<std::int64_t> shape) : name_(std::move(name)), shape_(std::move(shape)) {
  const auto refuse = [&](const char* start, const char* end) {
    throw UseError(fmt::format("{}: {}the array's shape is {}{}", name_, start, shape_text(shape_), end));
  };
  if (shape_.empty() || shape_.size() > 2) refuse("", "; a table's is (rows, columns)");
  if (rows() == 0) refuse("no data rows: ", "");
  if (columns() == 0) refuse("no columns: ", "");
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  constexpr std::size_t shown = 8;
  if (shape.size() == 1) return fmt::format("({},)", shape[0]);
  const auto end = shape.begin() + static_cast<std::ptrdiff_t>(std::min(shown, shape.size()));
  return fmt::format("({}{})", fmt::join(shape.begin(), end, ", "), shape.size() > shown ? ", ..." : "");
}

}  // namespace ddp
