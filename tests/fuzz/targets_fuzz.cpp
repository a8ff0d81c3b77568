// The targets in a file of their own, with a table of features of eight rows.
#include <array>
#include <string_view>

#include "fuzz/table_check.hpp"

namespace {

constexpr std::string_view features = "a,b\n0,0\n1,0\n0,1\n1,1\n2,1\n3,-1\n-1,2\n0.5,0.25\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddp::fuzz;
  Input input(data, size);
  const InputFile table({reinterpret_cast<const std::uint8_t*>(features.data()), features.size()}, "features");
  // A targets' file is known by its extension.
  const InputFile file(input.file, std::array{"y.csv", "y.npy", "y.tsv"}.at(input.choices.below(3)));
  Reading reading;
  reading.file.format = ddp::FileFormat::csv;
  reading.file.targets_file = file.path();
  choose_columns(input.choices, reading.selection);
  check_table(table.path(), input.choices, reading);
  return 0;
}
