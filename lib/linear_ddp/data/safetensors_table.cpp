#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/matrix_table.hpp>
#include <linear_ddp/data/safetensors_header.hpp>
#include <linear_ddp/data/stored_matrix.hpp>

namespace ddp {
namespace {

std::unique_ptr<Matrix> open_tensor(const InputFile& file, const SafetensorsHeader& header, const std::string& key) {
  const auto found = std::find_if(header.tensors.begin(), header.tensors.end(),
                                  [&](const SafetensorsEntry& tensor) { return tensor.name == key; });
  if (found == header.tensors.end()) {
    std::vector<std::string> keys;
    for (const auto& tensor : header.tensors) keys.push_back(tensor.name);
    throw UseError(fmt::format("{}: no tensor {}{}", file.path(), excerpt(key), key_suggestion(key, keys)));
  }
  const std::string name = fmt::format("{}: tensor {}", file.path(), excerpt(key));
  const auto decoder = safetensors_decoder(found->dtype);
  if (!decoder) {
    throw UseError(fmt::format("{}: its dtype {} cannot be used; convert it to F32, another F, a BF16, I, U or BOOL",
                               name, excerpt(found->dtype)));
  }
  auto bytes = std::make_unique<FilePart>(name, file, static_cast<std::int64_t>(header.data_start + found->begin),
                                          static_cast<std::int64_t>(found->end - found->begin));
  return std::make_unique<StoredMatrix>(std::move(bytes),
                                        ArrayLayout{.type = found->dtype, .decoder = *decoder, .shape = found->shape});
}

}  // namespace

TableShare read_safetensors_table(const World& world, const std::string& path, const ArrayKeys& keys,
                                  const ColumnSelection& selection) {
  auto table = open_matrix_table(world, path, [&](MatrixTable& opened) {
    const SafetensorsHeader header = read_safetensors_header(opened.file);
    const auto open = [&](const std::string& key) { return open_tensor(opened.file, header, key); };
    take_matrices(opened, open, keys, selection);
  });
  return read_matrix_table(world, std::move(table), selection);
}

}  // namespace ddp
