#include <linear_ddp/training/checkpoint.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/hash.hpp>

namespace ddp {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step-", suffix = ".safetensors";
constexpr const char* checksum_name = "checksum";

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

void remove_old(const std::string& folder, std::int64_t step, std::int64_t keep) {
  std::error_code ignored;  // what stays costs room and no more
  std::int64_t kept = 0;
  for (const CheckpointFile& file : checkpoint_files(folder)) {
    // A newer one is torn: this training went on from an older one.
    if (file.step <= step && ++kept > keep) fs::remove(file.path, ignored);
  }
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(fmt::format(".{}", prefix)) && name.ends_with(".tmp")) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

std::string Checkpoint::text(const std::string& name) const {
  const auto found = file_.metadata.find(name);
  return found == file_.metadata.end() ? std::string{} : found->second;
}

template <class T>
void Checkpoint::exchange_values(const std::string& name, std::vector<T>& values, std::size_t numel) {
  constexpr bool is_float = std::is_same_v<T, float>;
  if (!gives_back_) {
    const std::vector<std::int64_t> shape{std::ssize(values)};
    if (values.empty()) return;
    if constexpr (is_float) file_.tensors.push_back(make_f32(name, shape, values));
    if constexpr (!is_float) file_.tensors.push_back(make_f64(name, shape, values));
    return;
  }
  values.clear();
  const auto& tensors = file_.tensors;
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& one) { return one.name == name; });
  if (found == tensors.end()) return;
  if (found->dtype != (is_float ? "F32" : "F64") || found->bytes.size() != numel * sizeof(T)) {
    throw UseError(fmt::format("{}: {} is not the {} numbers that this training has", file_.path, name, numel));
  }
  if constexpr (is_float) values = found->floats();
  if constexpr (!is_float) values = found->doubles();
}

void Checkpoint::exchange(const std::string& name, std::vector<float>& values, std::size_t numel) {
  exchange_values(name, values, numel);
}

void Checkpoint::exchange(const std::string& name, std::vector<double>& values, std::size_t numel) {
  exchange_values(name, values, numel);
}

void Checkpoint::exchange(const std::string& name, std::int64_t& value) {
  if (!gives_back_) return set_text(name, std::to_string(value));
  const auto found = whole_number<std::int64_t>(text(name));
  if (!found) throw UseError(fmt::format("{}: {} is no whole number", file_.path, name));
  value = *found;
}

void Checkpoint::exchange(const std::string& name, bool& value) {
  std::int64_t number = value ? 1 : 0;
  exchange(name, number);
  value = number != 0;
}

std::vector<CheckpointFile> checkpoint_files(const std::string& folder) {
  std::vector<CheckpointFile> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    const std::string_view number(name.data() + prefix.size(), name.size() - prefix.size() - suffix.size());
    if (const auto step = whole_number<std::int64_t>(number)) files.push_back({*step, entry->path().string()});
  }
  if (error && error != std::errc::no_such_file_or_directory) fail("look into the folder " + folder, error.message());
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.step > b.step; });
  return files;
}

std::string checkpoint_path(const std::string& folder, std::int64_t step) {
  return (fs::path(folder) / fmt::format("{}{:012}{}", prefix, step, suffix)).string();
}

void write_checkpoint(const std::string& folder, std::int64_t step, const Checkpoint& state, std::int64_t keep) {
  const std::string path = checkpoint_path(folder, step);
  if (!fs::is_directory(folder)) fail("write " + path, "its folder is gone");
  StoredFile file = state.file();
  file.metadata[checksum_name] = checkpoint_checksum(file);
  write_safetensors(path, file);
  remove_old(folder, step, keep);
}

Checkpoint read_checkpoint(const std::string& path) {
  StoredFile file = read_safetensors(path);
  const auto stored = file.metadata.find(checksum_name);
  if (stored == file.metadata.end()) throw UseError(path + ": it has no checksum, so it is no checkpoint");
  if (stored->second != checkpoint_checksum(file)) {
    throw UseError(path + ": its checksum is not that of its content: it has changed since it was written");
  }
  return Checkpoint(std::move(file));
}

std::string checkpoint_checksum(const StoredFile& file) {
  Hash hash;
  const auto add = [&hash](std::string_view text) {
    const std::uint64_t size = text.size();
    hash.add(std::as_bytes(std::span(&size, 1)));
    hash.add(std::as_bytes(std::span(text)));
  };
  for (const auto& [name, text] : file.metadata) {
    if (name == checksum_name) continue;
    add(name);
    add(text);
  }
  for (const StoredTensor& tensor : file.tensors) {
    add(tensor.name);
    add(tensor.dtype);
    hash.add(std::as_bytes(std::span(tensor.shape)));
    hash.add(tensor.bytes);
  }
  return fmt::format("{:016x}", hash.value());
}

}  // namespace ddp
