#include <linear_ddp/data/table.hpp>

#include <fmt/format.h>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/input_file.hpp>

namespace ddp {

TableShare read_table(const World& world, const std::string& path, const TextFormat& text,
                      const ColumnSelection& selection) {
  const std::string extension = lower_case_extension(path);
  if (extension == ".csv" || extension == ".tsv") return read_text_table(world, path, text, selection);
  if (extension == ".npy") return read_npy_table(world, path, selection);
  // Every rank has the same path: the error needs no agreement, but it is one of all ranks.
  throw AgreedError(Status::wrong_use,
                    fmt::format("{}: no reader for files with the extension {}; tables are .csv, .tsv "
                                "and .npy",
                                path, excerpt(extension)));
}

}  // namespace ddp
