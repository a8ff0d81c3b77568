#include <fmt/format.h>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/table.hpp>

namespace ddp {

TableShare read_hdf5_table(const World&, const std::string& path, const ArrayKeys&, const ColumnSelection&) {
  // Every rank runs the same build: the error needs no agreement, but it is one of all ranks.
  throw AgreedError(Status::wrong_use,
                    fmt::format("{}: this linear_ddp was built without HDF5; build it where HDF5 1.10.7 or newer is "
                                "found (libhdf5-dev), or store the arrays as .npz or .safetensors",
                                path));
}

}  // namespace ddp
