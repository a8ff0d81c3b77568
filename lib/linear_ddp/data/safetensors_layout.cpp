#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/safetensors_header.hpp>

namespace ddp {
namespace {

struct Dtype {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr Dtype dtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                            {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                            {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};

std::string range(std::uint64_t begin, std::uint64_t end) {
  return fmt::format("[{}, {})", begin, end);
}

/// "[2, 3]"; no more of it than its first sizes.
std::string shape_text(const std::vector<std::int64_t>& shape) {
  constexpr std::size_t shown = 8;
  const auto end = shape.begin() + static_cast<std::ptrdiff_t>(std::min(shown, shape.size()));
  return fmt::format("[{}{}]", fmt::join(shape.begin(), end, ", "), shape.size() > shown ? ", ..." : "");
}

void check_size(const SafetensorsEntry& tensor, const std::string& path) {
  const auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
  const auto refuse = [&](const std::string& reason) {
    throw UseError(fmt::format("{}: tensor {}: {}", path, excerpt(tensor.name), reason));
  };
  if (!tensor_bytes(tensor.dtype, {})) {
    std::string known;
    for (const Dtype& dtype : dtypes) known += fmt::format("{}{}", known.empty() ? "" : ", ", dtype.name);
    refuse(fmt::format("dtype {} is not one of {}", excerpt(tensor.dtype), known));
  }
  if (tensor.begin > tensor.end) refuse("data_offsets " + range(tensor.begin, tensor.end) + " run backwards");
  if (bytes && *bytes == tensor.end - tensor.begin) return;
  refuse(fmt::format("shape {} of {} {}, but its data_offsets {} hold {} bytes", shape_text(tensor.shape), tensor.dtype,
                     bytes ? fmt::format("takes {} bytes", *bytes) : "is larger than any file",
                     range(tensor.begin, tensor.end), tensor.end - tensor.begin));
}

}  // namespace

std::optional<std::uint64_t> tensor_bytes(std::string_view dtype, const std::vector<std::int64_t>& shape) {
  const auto* known =
      std::find_if(std::begin(dtypes), std::end(dtypes), [&](const Dtype& d) { return d.name == dtype; });
  if (known == std::end(dtypes)) return std::nullopt;
  std::uint64_t bytes = known->bytes;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    const auto factor = static_cast<std::uint64_t>(extent);
    if (factor != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / factor) return std::nullopt;
    bytes *= factor;
  }
  return bytes;
}

void check_safetensors_layout(SafetensorsHeader& header, std::uint64_t data_start, std::uint64_t data_bytes,
                              const std::string& path) {
  for (const auto& tensor : header.tensors) check_size(tensor, path);
  const auto place = [](const SafetensorsEntry& tensor) { return std::tuple(tensor.begin, tensor.end); };
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });

  std::uint64_t covered = 0;
  const std::string* last = nullptr;
  for (const auto& tensor : header.tensors) {
    if (tensor.begin > covered) {
      throw UseError(fmt::format("{}: tensor {}: its data_offsets begin at {}, but what is before ends at {}", path,
                                 excerpt(tensor.name), tensor.begin, covered));
    }
    if (tensor.begin < covered) {
      throw UseError(fmt::format("{}: tensors {} and {} overlap: data_offsets begin at {}, before {}", path,
                                 excerpt(*last), excerpt(tensor.name), tensor.begin, covered));
    }
    covered = tensor.end;
    last = &tensor.name;
  }
  if (covered > data_bytes) {
    throw UseError(fmt::format("{}: truncated: need {} bytes, up to the end of tensor {}, have {}", path,
                               data_start + covered, excerpt(*last), data_start + data_bytes));
  }
  if (covered < data_bytes) {
    throw UseError(fmt::format("{}: the last {} bytes belong to no tensor", path, data_bytes - covered));
  }
}

std::string format_safetensors_header(const StoredFile& file) {
  const std::string attempt = "make a safetensors file";
  auto header = nlohmann::ordered_json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::uint64_t begin = 0;
  for (const StoredTensor& tensor : file.tensors) {
    const auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
    if (bytes != tensor.bytes.size()) {
      fail(attempt, fmt::format("tensor {}: {} bytes are not shape {} of {}", excerpt(tensor.name), tensor.bytes.size(),
                                shape_text(tensor.shape), excerpt(tensor.dtype)));
    }
    if (tensor.name == "__metadata__" || header.contains(tensor.name)) {
      fail(attempt, "two entries have the name " + excerpt(tensor.name));
    }
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, begin + *bytes}}};
    begin += *bytes;
  }
  try {
    std::string text = header.dump();
    text.resize(round_up<std::size_t>(text.size(), 8), ' ');
    return text;
  } catch (const nlohmann::json::type_error&) {
    fail(attempt, "a name or a text of the metadata is not UTF-8");
  }
}

}  // namespace ddp
