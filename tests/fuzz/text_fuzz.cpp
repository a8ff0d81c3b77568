#include <array>

#include "fuzz/table_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddp::fuzz;
  Input input(data, size);
  const InputFile file(input.file);
  Reading reading;
  reading.file.format = ddp::FileFormat::csv;
  reading.text.delimiter = std::array{'\0', ';', '\t', ' ', '|'}.at(input.choices.below(5));
  reading.text.header =
      std::array{ddp::Header::automatic, ddp::Header::yes, ddp::Header::no}.at(input.choices.below(3));
  reading.text.decimal = std::array{'.', ','}.at(input.choices.below(2));
  choose_columns(input.choices, reading.selection);
  check_table(file.path(), input.choices, reading);
  return 0;
}
