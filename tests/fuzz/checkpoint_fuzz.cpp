#include <fmt/format.h>

#include <exception>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/training/checkpoint.hpp>
#include "fuzz/input.hpp"

namespace {

using ddp::fuzz::require;

template <class Value>
void check_values(ddp::Checkpoint& state, const std::string& name, std::size_t numel) {
  std::vector<Value> values;
  try {
    state.exchange(name, values, numel);
    require(values.empty() || values.size() == numel, "all the values that are asked for, or none");
  } catch (const ddp::UseError&) {
  }
}

void check_number(ddp::Checkpoint& state, const std::string& name) {
  try {
    std::int64_t number = 0;
    state.exchange(name, number);
    require(state.text(name).find_first_not_of("-0123456789") == std::string::npos, "a number is digits");
  } catch (const ddp::UseError&) {
  }
}

/// What a training takes out of it, as if its checksum was right: no mutation of the fuzzer's keeps that.
void check(ddp::StoredFile file) {
  file.metadata["checksum"] = ddp::checkpoint_checksum(file);
  const auto tensors = file.tensors;
  const auto texts = file.metadata;
  ddp::Checkpoint state(std::move(file));
  for (const auto& tensor : tensors) {
    check_values<float>(state, tensor.name, tensor.bytes.size() / sizeof(float));
    check_values<double>(state, tensor.name, tensor.bytes.size() / sizeof(double));
    check_values<double>(state, tensor.name, 3);
  }
  for (const auto& [name, text] : texts) check_number(state, name);
  check_values<float>(state, "weight", 4);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ddp::fuzz::InputFile file({data, size});
  try {
    check(ddp::read_safetensors(file.path()));
    check(ddp::read_checkpoint(file.path()).file());
  } catch (const ddp::UseError&) {
  } catch (const std::exception& error) {
    require(false, fmt::format("a file is refused as wrong use, not: {}", error.what()));
  }
  return 0;
}
