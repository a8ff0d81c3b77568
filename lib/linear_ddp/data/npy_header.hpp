#pragma once

#include <linear_ddp/data/byte_source.hpp>
#include <linear_ddp/data/stored_matrix.hpp>

namespace ddp {

/// The header of a .npy file (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), versions 1, 2
/// and 3. Throws UseError for what is no .npy file, and for dtypes that are no plain numbers.
[[nodiscard]] ArrayLayout read_npy_header(ByteSource& source);

}  // namespace ddp
