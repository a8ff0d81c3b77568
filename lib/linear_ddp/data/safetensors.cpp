#include <linear_ddp/data/safetensors.hpp>

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <span>

#include <linear_ddp/base/atomic_file.hpp>
#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/input_file.hpp>
#include <linear_ddp/data/safetensors_header.hpp>
#include "kernels/half.hpp"

namespace ddp {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian, and read as they are");

constexpr std::uint64_t length_bytes = sizeof(std::uint64_t);
constexpr std::uint64_t header_limit = 100'000'000;  // the reference implementation's

std::span<char> chars(std::span<std::byte> bytes) {
  return {reinterpret_cast<char*>(bytes.data()), bytes.size()};
}

void require_size(const std::string& path, std::uint64_t needed, std::uint64_t size) {
  if (size < needed) throw UseError(fmt::format("{}: truncated: need {} bytes, have {}", path, needed, size));
}

std::string read_header_text(const InputFile& file, std::uint64_t size, const std::string& path) {
  require_size(path, length_bytes, size);
  std::uint64_t length = 0;
  file.read_all(0, chars(std::as_writable_bytes(std::span(&length, 1))));
  if (length > header_limit) {
    throw UseError(fmt::format("{}: header length {} is above the limit of {} bytes; is it a safetensors file?", path,
                               length, header_limit));
  }
  require_size(path, length_bytes + length, size);
  std::string header(static_cast<std::size_t>(length), '\0');
  file.read_all(length_bytes, header);
  return header;
}

template <class T, class Stored, class Convert>
std::vector<T> convert(std::span<const std::byte> bytes, const Convert& convert_one) {
  std::vector<T> values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = static_cast<T>(convert_one(stored));
  }
  return values;
}

template <class T>
std::vector<T> values_as(const StoredTensor& tensor) {
  const auto as_it_is = [](auto value) { return value; };
  if (tensor.dtype == "F32") return convert<T, float>(tensor.bytes, as_it_is);
  if (tensor.dtype == "F64") return convert<T, double>(tensor.bytes, as_it_is);
  if (tensor.dtype == "F16") return convert<T, std::uint16_t>(tensor.bytes, kernels::Fp16::to_float);
  if (tensor.dtype == "BF16") return convert<T, std::uint16_t>(tensor.bytes, kernels::Bf16::to_float);
  throw UseError(fmt::format("{}tensor {} has dtype {}, expected F32, F64, F16 or BF16; convert it",
                             tensor.path.empty() ? "" : tensor.path + ": ", excerpt(tensor.name),
                             excerpt(tensor.dtype)));
}

template <class T>
StoredTensor make(const char* dtype, const std::string& name, std::vector<std::int64_t> shape,
                  const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  if (tensor_bytes(dtype, shape) != bytes.size()) {
    fail("make tensor " + excerpt(name),
         fmt::format("{} values are not shape [{}]", values.size(), fmt::join(shape, ", ")));
  }
  return {name, dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

}  // namespace

std::vector<float> StoredTensor::floats() const {
  return values_as<float>(*this);
}

std::vector<double> StoredTensor::doubles() const {
  return values_as<double>(*this);
}

const StoredTensor& StoredFile::at(const std::string& name) const {
  for (const StoredTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  std::string names;
  for (const StoredTensor& tensor : tensors) names += (names.empty() ? "" : ", ") + excerpt(tensor.name);
  throw UseError(fmt::format("{}: no tensor {}; it has {}", path.empty() ? "safetensors file" : path, excerpt(name),
                             names.empty() ? "none" : names));
}

SafetensorsHeader read_safetensors_header(const InputFile& file) {
  const auto size = static_cast<std::uint64_t>(file.size());
  const std::string text = read_header_text(file, size, file.path());
  SafetensorsHeader header = parse_safetensors_header(text, file.path());
  header.data_start = length_bytes + text.size();
  check_safetensors_layout(header, header.data_start, size - header.data_start, file.path());
  return header;
}

StoredFile read_safetensors(const std::string& path) {
  const InputFile input(path);
  SafetensorsHeader header = read_safetensors_header(input);
  StoredFile file{.tensors = {}, .metadata = std::move(header.metadata), .path = path};
  file.tensors.reserve(header.tensors.size());
  for (SafetensorsEntry& entry : header.tensors) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(entry.end - entry.begin));
    input.read_all(static_cast<std::int64_t>(header.data_start + entry.begin), chars(bytes));
    file.tensors.push_back(
        {std::move(entry.name), std::move(entry.dtype), std::move(entry.shape), std::move(bytes), path});
  }
  return file;
}

void write_safetensors(const std::string& path, const StoredFile& file) {
  const std::string header = format_safetensors_header(file);
  const std::uint64_t length = header.size();
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(&length, 1)), std::as_bytes(std::span(header))};
  for (const StoredTensor& tensor : file.tensors) parts.emplace_back(tensor.bytes);
  write_file_atomically(path, parts);
}

StoredTensor make_f32(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return make("F32", name, std::move(shape), values);
}

StoredTensor make_f64(const std::string& name, std::vector<std::int64_t> shape, const std::vector<double>& values) {
  return make("F64", name, std::move(shape), values);
}

}  // namespace ddp
