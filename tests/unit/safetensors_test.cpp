// safetensors files: what others wrote, what is broken, what we write ourselves, and thousands of damaged files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/safetensors.hpp>
#include "support/data_path.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace ddp {
namespace {

using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::string case_file(const std::string& name) {
  return test::data_path("cases/" + name + ".safetensors");
}

std::string content(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A file with this header and `data_bytes` zeros.
std::string with_header(const std::string& json, std::size_t data_bytes = 0) {
  const std::uint64_t length = json.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + json + std::string(data_bytes, '\0');
}

class Safetensors : public ::testing::Test {
 protected:
  StoredFile read_text(const std::string& text) const {
    write_text(path(), text);
    return read_safetensors(path());
  }
  std::string refusal(const std::string& text) const {
    return message_of<UseError>([&] { (void)read_text(text); });
  }
  [[nodiscard]] std::string path() const { return folder_ / "x.safetensors"; }

 private:
  test::TemporaryFolder folder_;
};

class GoodCase : public ::testing::TestWithParam<const char*> {};

TEST_P(GoodCase, HoldsTheRowsOfTheBaseTable) {
  const StoredFile file = read_safetensors(case_file(GetParam()));
  ASSERT_EQ(file.tensors.size(), 2U);
  EXPECT_EQ(file.tensors[0].name, "X") << "in the order of the data";
  EXPECT_THAT(file.at("X").shape, ElementsAre(8, 2));
  EXPECT_THAT(file.at("y").shape, ElementsAre(8));
  const std::vector<float> x = file.at("X").floats(), y = file.at("y").floats();
  EXPECT_EQ(x, (std::vector<float>{0, 0, 1, 0, 0, 1, 1, 1, 2, 1, 3, -1, -1, 2, 0.5F, 0.25F}));
  EXPECT_EQ(y, (std::vector<float>{1, 3, -2, 0, 2, 10, -7, 1.25F}));
}

INSTANTIATE_TEST_SUITE_P(Safetensors, GoodCase,
                         ::testing::Values("P30-good", "P32-bf16", "P32-f16", "P33-empty-metadata", "P33-reordered"));

TEST_F(Safetensors, MetadataAreNoTensor) {
  const StoredFile file = read_safetensors(case_file("P33-metadata-only"));
  EXPECT_TRUE(file.tensors.empty());
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"note", "no tensors"}}));
  EXPECT_THAT(message_of<UseError>([&] { (void)file.at("X"); }), AllOf(HasSubstr("no tensor 'X'"), HasSubstr("P33")));
  EXPECT_THAT(message_of<UseError>([] { (void)read_safetensors(case_file("P30-good")).at("Z"); }),
              AllOf(HasSubstr("no tensor 'Z'"), HasSubstr("'X', 'y'")));
}

struct BrokenCase {
  const char *file, *message;
};

class RefusedCase : public ::testing::TestWithParam<BrokenCase> {};

TEST_P(RefusedCase, NamesFileAndCause) {
  const std::string path = case_file(GetParam().file);
  EXPECT_THAT(message_of<UseError>([&] { (void)read_safetensors(path); }),
              AllOf(HasSubstr(path), HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Safetensors, RefusedCase,
    ::testing::Values(
        BrokenCase{"P30-duplicate-key", "duplicate key 'y'"},
        BrokenCase{"P31-header-len-huge", "header length 4611686018427387904"},
        BrokenCase{"P31-not-json", "no JSON at its byte"},
        BrokenCase{"P31-out-of-file", "tensor 'y': shape [8] of F64 takes 64 bytes"},
        BrokenCase{"P31-shape-mismatch", "tensor 'y': shape [1000, 1000] of F64 takes 8000000 bytes"},
        BrokenCase{"P31-shape-overflow", "tensor 'y': shape [4294967296, 4294967296, 8] of F64 is larger"},
        BrokenCase{"P31-short", "truncated: need 8 bytes, have 3"},
        BrokenCase{"P31-truncated", "truncated: need 320 bytes, up to the end of tensor 'y', have 280"},
        BrokenCase{"L12-truncated-ckpt", "truncated: need 320 bytes, up to the end of tensor 'y', have 150"}));

TEST_F(Safetensors, ATruncatedFileTellsBothSizes) {
  const std::string good = content(case_file("P30-good"));
  EXPECT_THAT(refusal(good.substr(0, 150)), AllOf(HasSubstr("need 320 bytes"), HasSubstr("have 150")));
  EXPECT_THAT(refusal(good.substr(0, 20)), AllOf(HasSubstr("need 128 bytes"), HasSubstr("have 20")));
  EXPECT_THAT(refusal(""), AllOf(HasSubstr("need 8 bytes"), HasSubstr("have 0")));
  EXPECT_THAT(refusal(good + "more"), HasSubstr("last 4 bytes"));
}

TEST_F(Safetensors, RefusesHeadersThatBreakTheFormat) {
  const auto tensor = [](const std::string& fields) { return with_header("{\"w\":{" + fields + "}}", 8); };
  EXPECT_EQ(read_text(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])")).at("w").floats(),
            std::vector<float>(2));

  EXPECT_THAT(refusal(tensor(R"("dtype":"F32","shape":[2])")), HasSubstr("tensor 'w': no key data_offsets"));
  EXPECT_THAT(refusal(tensor(R"("dtype":"F32","dtype":"F32")")), HasSubstr("tensor 'w': duplicate key 'dtype'"));
  EXPECT_THAT(refusal(tensor(R"("type":"F32")")), HasSubstr("tensor 'w': unknown key 'type'"));
  EXPECT_THAT(refusal(tensor(R"("dtype":"F31","shape":[2],"data_offsets":[0,8])")),
              HasSubstr("dtype 'F31' is not one of BOOL"));
  EXPECT_THAT(refusal(tensor(R"("dtype":4)")), HasSubstr("a number at key 'dtype', expected a string"));
  EXPECT_THAT(refusal(tensor(R"("shape":"2")")), HasSubstr("a string at key 'shape'"));
  EXPECT_THAT(refusal(tensor(R"("shape":[-2])")), HasSubstr("-2 at key 'shape'"));
  EXPECT_THAT(refusal(tensor(R"("shape":[2.0])")), HasSubstr("2.0 at key 'shape'"));
  EXPECT_THAT(refusal(tensor(R"("shape":[[2]])")), HasSubstr("an array at key 'shape'"));
  EXPECT_THAT(refusal(tensor(R"("shape":[18446744073709551615])")), HasSubstr("too large"));
  EXPECT_THAT(refusal(tensor(R"("shape":[null])")), HasSubstr("null"));
  EXPECT_THAT(refusal(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0])")), HasSubstr("not two numbers"));
  EXPECT_THAT(refusal(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])")), HasSubstr("not two numbers"));
  EXPECT_THAT(refusal(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])")), HasSubstr("run backwards"));
  EXPECT_THAT(refusal(tensor(R"("dtype":"U8","shape":[4],"data_offsets":[4,8])")), HasSubstr("begin at 4"));
  EXPECT_THAT(refusal(tensor(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])")), HasSubstr("last 4 bytes"));
  EXPECT_THAT(refusal(with_header(R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},)"
                                  R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                                  8)),
              HasSubstr("tensors 'a' and 'b' overlap"));
  EXPECT_THAT(refusal(with_header(R"({"__metadata__":{"step":3}})")), HasSubstr("expected strings only"));
  EXPECT_THAT(refusal(with_header(R"({"w":3})")), HasSubstr("an object for each tensor"));
  EXPECT_THAT(refusal(with_header("[]")), HasSubstr("byte 8"));
  EXPECT_THAT(refusal(with_header("")), HasSubstr("byte 8"));
  EXPECT_THAT(refusal(with_header("{} {}")), HasSubstr("no JSON at its byte"));
  EXPECT_THAT(refusal(with_header("{\"\xff\":{}}")), HasSubstr("no JSON at its byte"));
  EXPECT_THAT(refusal(with_header("{\"w\":" + std::string(1'000'000, '['))), HasSubstr("an array"));
}

TEST_F(Safetensors, APathThatCannotBeReadIsRefusedWithTheSystemsWords) {
  EXPECT_THAT(message_of<UseError>([] { (void)read_safetensors("/nowhere/x"); }),
              AllOf(HasSubstr("/nowhere/x"), HasSubstr(std::strerror(ENOENT))));
  EXPECT_THAT(message_of<UseError>([] { (void)read_safetensors("/dev/zero"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(message_of<UseError>([] { (void)read_safetensors("/tmp"); }), HasSubstr("it is a directory"));
}

StoredFile model_file() {
  return {.tensors = {make_f32("weight", {2, 3}, {1, 2, 3, 4, 5, -0.0F}), make_f32("bias", {}, {0.5F}),
                      make_f32("none", {0, 4}, {})},
          .metadata = {{"format", "pt"}, {"names", "a \"quoted\" \n ü"}}};
}

TEST_F(Safetensors, WritesTheDocumentedBytes) {
  StoredFile file{.tensors = {make_f32("weight", {1, 2}, {1, -2}), make_f32("bias", {1}, {0.5F})},
                  .metadata = {{"format", "pt"}}};
  write_safetensors(path(), file);
  std::string header = R"({"__metadata__":{"format":"pt"},"weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                       R"("bias":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
  while (header.size() % 8 != 0) header += ' ';
  const std::string data("\0\0\x80\x3f\0\0\0\xc0\0\0\0\x3f", 12);
  EXPECT_EQ(content(path()), with_header(header) + data);
}

TEST_F(Safetensors, ReadsBackWhatItWrote) {
  const StoredFile file = model_file();
  write_safetensors(path(), file);
  const std::string bytes = content(path());
  const StoredFile back = read_safetensors(path());
  EXPECT_EQ(back.metadata, file.metadata);
  ASSERT_EQ(back.tensors.size(), file.tensors.size());
  for (std::size_t i = 0; i < file.tensors.size(); ++i) {
    EXPECT_EQ(back.tensors[i].name, file.tensors[i].name);
    EXPECT_EQ(back.tensors[i].dtype, file.tensors[i].dtype);
    EXPECT_EQ(back.tensors[i].shape, file.tensors[i].shape);
    EXPECT_EQ(back.tensors[i].bytes, file.tensors[i].bytes);
  }
  write_safetensors(path(), back);
  EXPECT_EQ(content(path()), bytes);
}

TEST_F(Safetensors, WritesAndReadsEveryDtype) {
  StoredFile file;
  const std::pair<const char*, std::size_t> dtypes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
      {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8}};
  for (const auto& [dtype, size] : dtypes)
    file.tensors.push_back({dtype, dtype, {3}, std::vector<std::byte>(3 * size)});
  write_safetensors(path(), file);
  EXPECT_EQ(read_safetensors(path()).tensors.size(), std::size(dtypes));
  for (const StoredFile& each : {file, read_safetensors(path())})
    EXPECT_THAT(message_of<UseError>([&] { (void)each.at("I64").floats(); }),
                AllOf(HasSubstr(each.path), HasSubstr("tensor 'I64' has dtype 'I64', expected F32")));
}

TEST_F(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  const auto refused = [&](std::vector<StoredTensor> tensors) {
    return message_of<Error>([&] { write_safetensors(path(), {.tensors = std::move(tensors), .metadata = {}}); });
  };
  const StoredTensor good = make_f32("w", {1}, {1});
  EXPECT_THAT(refused({good, good}), HasSubstr("two entries have the name 'w'"));
  EXPECT_THAT(refused({{"w", "F32", {2}, std::vector<std::byte>(4)}}), HasSubstr("4 bytes are not shape [2] of 'F32'"));
  EXPECT_THAT(refused({{"w", "F32", {-1}, {}}}), HasSubstr("shape [-1]"));
  EXPECT_THAT(refused({{"w", "Q4", {1}, std::vector<std::byte>(4)}}), HasSubstr("Q4"));
  EXPECT_THAT(refused({make_f32("\xff", {1}, {1})}), HasSubstr("not UTF-8"));
  EXPECT_THAT(refused({make_f32("__metadata__", {1}, {1})}), HasSubstr("__metadata__"));
  EXPECT_THROW(make_f32("w", {2, 2}, {1, 2, 3}), Error);
}

/// IEEE 754 binary16 by its definition.
double half_value(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10U & 31U), fraction = static_cast<int>(bits & 1023U);
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST_F(Safetensors, ConvertsAllHalvesExactly) {
  StoredTensor halves{"h", "F16", {65536}, {}};
  for (unsigned bits = 0; bits < 65536; ++bits) {
    halves.bytes.push_back(static_cast<std::byte>(bits & 255U));
    halves.bytes.push_back(static_cast<std::byte>(bits >> 8U));
  }
  const auto values = halves.floats();
  halves.dtype = "BF16";
  const auto brain = halves.floats();
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const double expected = half_value(bits);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(values[bits])) << bits;
    else
      EXPECT_EQ(values[bits], expected) << bits;
    EXPECT_EQ(std::signbit(values[bits]), (bits & 0x8000U) != 0) << bits;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(brain[bits]), bits << 16U);
  }
}

TEST_F(Safetensors, ADamagedFileIsReadOrRefused) {
  std::mt19937 engine(20240607);
  const auto below = [&](std::size_t bound) { return std::size_t{engine()} % bound; };
  std::vector<std::string> seeds;
  for (const char* name : {"P30-good", "P32-f16", "P33-empty-metadata", "P33-metadata-only", "P33-reordered"}) {
    seeds.push_back(content(case_file(name)));
  }
  constexpr std::string_view alphabet = "{}[]\",:0123456789-+.eE \\untfXyF";
  int read = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = seeds[below(seeds.size())];
    for (std::size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
      const std::size_t place = below(text.size());
      switch (below(5)) {
        case 0:
          text[place] = static_cast<char>(below(256));
          break;
        case 1:
          text[place] = alphabet[below(alphabet.size())];
          break;
        case 2:
          text.resize(place);
          break;
        case 3:
          text.erase(place, 1);
          break;
        default:
          text.insert(place, 1, alphabet[below(alphabet.size())]);
          break;
      }
    }
    try {
      for (const StoredTensor& tensor : read_text(text).tensors)
        if (tensor.dtype == "F64" || tensor.dtype == "F16") (void)tensor.floats();
      ++read;
    } catch (const UseError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path()));
      ++refused;
    }
  }
  EXPECT_GT(read, 100) << "changed bytes of the data are no damage that can be seen";
  EXPECT_GT(refused, 1500);
}

}  // namespace
}  // namespace ddp
