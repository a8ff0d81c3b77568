#pragma once

#include <string>

#include "support/bytes_of.hpp"

namespace ddp::test {

/// A .npy file with this header and these data.
inline std::string npy(const std::string& literal, const std::string& data, char version = 1) {
  std::string length{static_cast<char>(literal.size() & 0xFF), static_cast<char>(literal.size() >> 8)};
  if (version > 1) length += std::string(2, '\0');
  return "\x93NUMPY" + std::string{version, '\0'} + length + literal + data;
}

}  // namespace ddp::test
