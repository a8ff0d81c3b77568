#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

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
