#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include <linear_ddp/base/error.hpp>

namespace ddp {

/// What can be wrong with a row. The first ones are NumberFault's.
enum class RowFault {
  none,
  missing,
  not_finite,
  out_of_range,
  not_a_number,
  negative_weight,
  not_utf8,
  fields,
  quotes,
  unreadable
};

/// What is wrong with a share: the first of each kind in words, and how many more there are.
class Complaints {
 public:
  /// `message()` is only made for the first of its kind.
  template <class Message>
  void add(RowFault fault, Message&& message) {
    ++number_;
    for (Kind& kind : kinds_) {
      if (kind.fault == fault) {
        ++kind.more;
        return;
      }
    }
    kinds_.push_back({fault, message()});
  }

  /// A table that is read in a wrong way has as many faults as rows: nobody needs their number.
  [[nodiscard]] bool enough() const noexcept { return number_ >= 1000; }

  /// Throws UseError when there is any.
  void require_none() const {
    if (kinds_.empty()) return;
    std::string text;
    for (const Kind& kind : kinds_) {
      text += (text.empty() ? "" : "; ") + kind.message;
      if (kind.more > 0) text += fmt::format(" (and {}{} more like it)", enough() ? "at least " : "", kind.more);
    }
    throw UseError(text);
  }

 private:
  struct Kind {
    RowFault fault;
    std::string message;
    std::int64_t more = 0;
  };
  std::vector<Kind> kinds_;
  std::int64_t number_ = 0;
};

}  // namespace ddp
