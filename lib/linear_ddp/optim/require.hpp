#pragma once

#include <linear_ddp/base/error.hpp>

namespace ddp {

/// Of an option.
inline void require(bool condition, const char* otherwise) {
  if (!condition) throw UseError(otherwise);
}

}  // namespace ddp
