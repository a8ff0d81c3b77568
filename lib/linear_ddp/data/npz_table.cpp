#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/matrix_table.hpp>
#include <linear_ddp/data/npy_header.hpp>
#include <linear_ddp/data/zip_member.hpp>

namespace ddp {
namespace {

/// NumPy stores the array X as the file X.npy.
ZipMember find_array(const InputFile& file, const std::vector<ZipMember>& members, const std::string& key) {
  const auto is_wanted = [&](const ZipMember& member) { return member.name == key + ".npy" || member.name == key; };
  const auto found = std::find_if(members.begin(), members.end(), is_wanted);
  if (found == members.end()) {
    std::vector<std::string> keys;
    for (const auto& member : members) {
      const bool array = member.name.ends_with(".npy");
      keys.push_back(array ? member.name.substr(0, member.name.size() - 4) : member.name);
    }
    throw UseError(fmt::format("{}: no array {}{}", file.path(), excerpt(key), key_suggestion(key, keys)));
  }
  if (std::find_if(found + 1, members.end(), is_wanted) != members.end()) {
    throw UseError(fmt::format("{}: the archive has two arrays {}", file.path(), excerpt(key)));
  }
  return *found;
}

std::string name_of(const InputFile& file, const std::string& key) {
  return fmt::format("{}: array {}", file.path(), excerpt(key));
}

std::unique_ptr<Matrix> open_array(const InputFile& file, const std::string& key, const ZipMember& member) {
  auto bytes = open_zip_member(name_of(file, key), file, member);
  const ArrayLayout layout = read_npy_header(*bytes);
  return std::make_unique<StoredMatrix>(std::move(bytes), layout);
}

}  // namespace

TableShare read_npz_table(const World& world, const std::string& path, const ArrayKeys& keys,
                          const ColumnSelection& selection) {
  std::vector<std::pair<std::string, ZipMember>> used;
  auto table = open_matrix_table(world, path, [&](MatrixTable& opened) {
    const auto members = read_zip_directory(opened.file);
    const auto open = [&](const std::string& key) {
      used.emplace_back(key, find_array(opened.file, members, key));
      return open_array(opened.file, key, used.back().second);
    };
    take_matrices(opened, open, keys, selection);
  });
  for (const auto& [key, member] : used) require_zip_crc(world, name_of(table->file, key), table->file, member);
  return read_matrix_table(world, std::move(table), selection);
}

}  // namespace ddp
