#include "fuzz/table_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddp::fuzz;
  Input input(data, size);
  const InputFile file(input.file);
  Reading reading;
  reading.file.format = ddp::FileFormat::npy;
  choose_columns(input.choices, reading.selection);
  check_table(file.path(), input.choices, reading);
  return 0;
}
