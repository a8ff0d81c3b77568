#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linear_ddp/data/input_file.hpp>
#include <linear_ddp/data/npy_decode.hpp>

namespace ddp {

/// The header of a .npy file (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
struct NpyHeader {
  std::string type;  ///< kind and size: "f8", "i2", "b1", …
  NpyDecoder decoder;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t data_begin = 0;
};

/// Versions 1, 2 and 3. Throws UseError for what is no .npy file, and for dtypes that are no plain numbers.
[[nodiscard]] NpyHeader read_npy_header(const InputFile& file);

/// As Python writes it: "(8,)".
[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace ddp
