#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/safetensors_header.hpp>

namespace ddp {
namespace {

using nlohmann::json;

/// Takes the header apart while it is read: a tree of JSON values would hide a key that occurs twice, and could take
/// many times the memory of the text.
class HeaderParser final : public nlohmann::json_sax<json> {
 public:
  explicit HeaderParser(const std::string& path) : path_(path) {}
  [[nodiscard]] SafetensorsHeader take() { return std::move(header_); }

  bool key(std::string& name) override {
    key_ = name;
    if (inside_ == Inside::tensor && name != "dtype" && name != "shape" && name != "data_offsets") {
      refuse("unknown key " + excerpt(name) + ", expected dtype, shape and data_offsets");
    }
    auto& known = inside_ == Inside::root ? names_ : keys_;
    if (!known.insert(name).second) refuse("duplicate key " + excerpt(name));
    return true;
  }

  bool start_object(std::size_t) override {
    if (inside_ == Inside::nothing) {
      inside_ = Inside::root;
    } else if (inside_ == Inside::root) {
      keys_.clear();
      inside_ = key_ == "__metadata__" ? Inside::metadata : Inside::tensor;
      if (inside_ == Inside::tensor) header_.tensors.emplace_back().name = key_;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() override {
    if (inside_ == Inside::tensor) {
      for (const char* needed : {"dtype", "shape", "data_offsets"}) {
        if (!keys_.contains(needed)) refuse(fmt::format("no key {}", needed));
      }
    }
    inside_ = inside_ == Inside::root ? Inside::nothing : Inside::root;
    return true;
  }

  bool start_array(std::size_t) override {
    if (inside_ != Inside::tensor || key_ == "dtype") unexpected("an array");
    inside_ = key_ == "shape" ? Inside::shape : Inside::offsets;
    offsets_ = 0;
    return true;
  }

  bool end_array() override {
    if (inside_ == Inside::offsets && offsets_ != 2) refuse("data_offsets are not two numbers");
    inside_ = Inside::tensor;
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (inside_ == Inside::shape) {
      if (value > std::numeric_limits<std::int64_t>::max()) refuse(fmt::format("shape: {} is too large", value));
      header_.tensors.back().shape.push_back(static_cast<std::int64_t>(value));
    } else if (inside_ == Inside::offsets) {
      auto& tensor = header_.tensors.back();
      (offsets_++ == 0 ? tensor.begin : tensor.end) = value;
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool string(std::string& value) override {
    if (inside_ == Inside::metadata)
      header_.metadata[key_] = value;
    else if (inside_ == Inside::tensor && key_ == "dtype")
      header_.tensors.back().dtype = value;
    else
      unexpected("a string");
    return true;
  }

  bool number_integer(std::int64_t value) override { return unexpected(fmt::format("{}", value)); }
  bool number_float(double, const std::string& text) override { return unexpected(text); }
  bool null() override { return unexpected("null"); }
  bool boolean(bool value) override { return unexpected(value ? "true" : "false"); }
  bool binary(json::binary_t&) override { return unexpected("binary data"); }

  bool parse_error(std::size_t byte, const std::string& last_token, const json::exception&) override {
    refuse(fmt::format("no JSON at its byte {}, near {}", byte, excerpt(last_token)));
  }

 private:
  enum class Inside { nothing, root, metadata, tensor, shape, offsets };

  [[noreturn]] void refuse(const std::string& reason) const {
    const bool in_tensor = inside_ == Inside::tensor || inside_ == Inside::shape || inside_ == Inside::offsets;
    throw UseError(fmt::format("{}: the header of the safetensors file is wrong: {}{}", path_,
                               in_tensor ? "tensor " + excerpt(header_.tensors.back().name) + ": " : "", reason));
  }

  [[noreturn]] bool unexpected(const std::string& what) const {
    const char* expected = "an object for each tensor";
    if (inside_ == Inside::metadata) expected = "strings only";
    if (inside_ == Inside::shape || inside_ == Inside::offsets) expected = "whole numbers from 0";
    if (inside_ == Inside::tensor) expected = key_ == "dtype" ? "a string" : "an array of whole numbers";
    refuse(fmt::format("{} at key {}, expected {}", what, excerpt(key_), expected));
  }

  const std::string& path_;
  SafetensorsHeader header_;
  Inside inside_ = Inside::nothing;
  std::string key_;
  std::set<std::string> names_, keys_;  // seen in the root, and in the object inside it
  int offsets_ = 0;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& path) {
  if (json.empty() || json.front() != '{') {
    throw UseError(fmt::format("{}: byte 8 is not the '{{' of a safetensors header; is it a safetensors file?", path));
  }
  HeaderParser parser(path);
  nlohmann::json::sax_parse(json.begin(), json.end(), &parser);
  return parser.take();
}

}  // namespace ddp
