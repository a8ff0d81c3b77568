#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/base/hash.hpp>
#include <linear_ddp/base/nearest.hpp>
#include "support/message_of.hpp"

namespace ddp {
namespace {

using ::testing::HasSubstr;

TEST(Error, SaysWhatWasTriedWhyItFailedAndWhatToDo) {
  errno = ENOSPC;
  const Error error = test::thrown<Error>([] { fail_errno("write model.safetensors", "free some space"); });
  EXPECT_EQ(error.status(), Status::failed);
  EXPECT_THAT(error.what(), HasSubstr("could not write model.safetensors: No space left on device; free some space"));
  EXPECT_THAT(error.what(), HasSubstr("base_test.cpp:"));
}

TEST(Narrow, RefusesWhatDoesNotFit) {
  EXPECT_EQ(narrow<int>(std::int64_t{2147483647}, "count"), 2147483647);
  EXPECT_THROW(static_cast<void>(narrow<int>(std::int64_t{2147483648}, "count")), Error);
  EXPECT_THROW(static_cast<void>(narrow<unsigned>(-1, "count")), Error);
}

TEST(CheckedSizes, RefuseWhatDoesNotFit) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  constexpr auto most_bytes = std::numeric_limits<std::size_t>::max();
  static_assert(checked_product<std::int64_t>(3'037'000'499, 3'037'000'499, "") == 9'223'372'030'926'249'001);
  static_assert(checked_product<std::int64_t>(most, 0, "") == 0);
  static_assert(round_up<std::int64_t>(0, 16) == 0 && round_up<std::int64_t>(1, 16) == 16);
  static_assert(round_up<std::int64_t>(most - 15, 16) == most - 15 &&
                round_up(most_bytes, std::size_t{5}) == most_bytes);

  EXPECT_THROW((void)checked_product(std::int64_t{3'037'000'500}, std::int64_t{3'037'000'500}, ""), UseError);
  EXPECT_THROW((void)checked_product(most_bytes, std::size_t{2}, ""), UseError);
  EXPECT_THROW((void)round_up(most, std::int64_t{16}), UseError);
  EXPECT_THROW((void)round_up(most_bytes, std::size_t{64}), UseError);
  EXPECT_THAT(
      test::message_of<UseError>([] { (void)checked_product(most, std::int64_t{10}, "the values of a batch"); }),
      HasSubstr("the values of a batch: 9223372036854775807 times 10"));
}

TEST(Hash, IsFnv1a64) {
  // Published test vectors of FNV-1a: "" and "foobar".
  Hash hash;
  EXPECT_EQ(hash.value(), 0xcbf29ce484222325U);
  hash.add(std::as_bytes(std::span("foo", 3)));
  hash.add(std::as_bytes(std::span("bar", 3)));
  EXPECT_EQ(hash.value(), 0x85944171f73967e8U);
}

TEST(Nearest, FindsTheTypingErrorAndNothingFarther) {
  const std::vector<std::string> options{"--momentum", "--metrics", "--epochs", "--lr"};
  EXPECT_EQ(nearest("--momentun", options), "--momentum");
  EXPECT_EQ(nearest("--epoch", options), "--epochs");
  EXPECT_EQ(nearest("--checkpoint", options), "");
}

}  // namespace
}  // namespace ddp
