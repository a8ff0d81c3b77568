#pragma once

#include <string>

namespace ddp::test {

/// Of a file in tests/data.
inline std::string data_path(const std::string& name) {
  return LINEAR_DDP_TEST_DATA "/" + name;
}

}  // namespace ddp::test
