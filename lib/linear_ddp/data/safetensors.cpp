#include <linear_ddp/data/safetensors.hpp>

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include <linear_ddp/base/atomic_file.hpp>
#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/input_file.hpp>
#include <linear_ddp/data/safetensors_header.hpp>

namespace ddp {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian, and read as they are");

constexpr std::uint64_t length_bytes = sizeof(std::uint64_t);
constexpr std::uint64_t header_limit = 100'000'000;  // the reference implementation's

void read(const InputFile& file, std::uint64_t offset, std::span<std::byte> bytes) {
  const std::span chars(reinterpret_cast<char*>(bytes.data()), bytes.size());
  if (file.read(static_cast<std::int64_t>(offset), chars) == bytes.size()) return;
  fail("read " + file.path(), fmt::format("it ends before byte {}", offset + bytes.size()));
}

void require_size(const std::string& path, std::uint64_t needed, std::uint64_t size) {
  if (size < needed) throw UseError(fmt::format("{}: truncated: need {} bytes, have {}", path, needed, size));
}

std::string read_header(const InputFile& file, std::uint64_t size, const std::string& path) {
  require_size(path, length_bytes, size);
  std::uint64_t length = 0;
  read(file, 0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > header_limit) {
    throw UseError(fmt::format("{}: header length {} is above the limit of {} bytes; is it a safetensors file?", path,
                               length, header_limit));
  }
  require_size(path, length_bytes + length, size);
  std::string header(static_cast<std::size_t>(length), '\0');
  read(file, length_bytes, std::as_writable_bytes(std::span(header)));
  return header;
}

/// Two powers of two apart from float's exponent; the product is exact, and makes subnormal halves normal floats.
float from_f16(std::uint16_t bits) {
  const std::uint32_t magnitude = (bits & 0x7FFFU) << 13U;
  const bool finite = (bits & 0x7C00U) != 0x7C00U;
  const float value =
      finite ? std::bit_cast<float>(magnitude) * 0x1p112F : std::bit_cast<float>(magnitude | 0x7F800000U);
  return std::copysign(value, (bits & 0x8000U) != 0 ? -1.0F : 1.0F);
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

template <class Stored, class Convert>
std::vector<float> convert(std::span<const std::byte> bytes, const Convert& to_float) {
  std::vector<float> values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = to_float(stored);
  }
  return values;
}

}  // namespace

std::vector<float> StoredTensor::floats() const {
  if (dtype == "F32") return convert<float>(bytes, [](float value) { return value; });
  if (dtype == "F64") return convert<double>(bytes, [](double value) { return static_cast<float>(value); });
  if (dtype == "F16") return convert<std::uint16_t>(bytes, from_f16);
  if (dtype == "BF16") return convert<std::uint16_t>(bytes, from_bf16);
  throw UseError(fmt::format("tensor {} has dtype {}, expected F32, F64, F16 or BF16", shortened(name), dtype));
}

const StoredTensor& StoredFile::at(const std::string& name) const {
  for (const StoredTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  std::string names;
  for (const StoredTensor& tensor : tensors) names += (names.empty() ? "" : ", ") + shortened(tensor.name);
  throw UseError(fmt::format("{}: no tensor {}; it has {}", path.empty() ? "safetensors file" : path, shortened(name),
                             names.empty() ? "none" : names));
}

StoredFile read_safetensors(const std::string& path) {
  const InputFile input(path);
  const auto size = static_cast<std::uint64_t>(input.size());
  const std::string text = read_header(input, size, path);
  const std::uint64_t data_start = length_bytes + text.size();
  SafetensorsHeader header = parse_safetensors_header(text, path);
  check_safetensors_layout(header, data_start, size - data_start, path);

  StoredFile file{.tensors = {}, .metadata = std::move(header.metadata), .path = path};
  file.tensors.reserve(header.tensors.size());
  for (SafetensorsEntry& entry : header.tensors) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(entry.end - entry.begin));
    read(input, data_start + entry.begin, bytes);
    file.tensors.push_back({std::move(entry.name), std::move(entry.dtype), std::move(entry.shape), std::move(bytes)});
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
  const auto bytes = std::as_bytes(std::span(values));
  if (tensor_bytes("F32", shape) != bytes.size()) {
    fail("make tensor " + name, fmt::format("{} values are not shape [{}]", values.size(), fmt::join(shape, ", ")));
  }
  return {name, "F32", std::move(shape), {bytes.begin(), bytes.end()}};
}

}  // namespace ddp
