// One copy for the ranks of a host, the same values on all hosts.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/launch/shared_array.hpp>
#include "support/mpi_test_world.hpp"

namespace ddp {
namespace {

using test::world;

/// The ranks take turns in blocks of `block` values, the last one has no more than that.
SharedArray exchanged(std::int64_t size, std::int64_t block, int part) {
  SharedArray array(world(), size, part);
  std::vector<SharedArray::Range> own;
  for (std::int64_t first = block * world().rank(); first < size; first += block * world().size()) {
    own.push_back({first, std::min(block, size - first)});
    for (std::int64_t i = first; i < first + own.back().count; ++i) {
      array.data()[i] = static_cast<float>(i % 1'000'003);
    }
  }
  array.exchange(world(), own);
  return array;
}

void expect_all(const SharedArray& array, std::int64_t size) {
  ASSERT_EQ(array.size(), static_cast<std::size_t>(size));
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    wrong += array[static_cast<std::size_t>(i)] == static_cast<float>(i % 1'000'003) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(SharedArray, IsOneCopyForAHost) {
  SharedArray array = exchanged(101, 7, 0);
  expect_all(array, 101);
  EXPECT_EQ(array.is_shared(), world().size() > 1);
  EXPECT_EQ(array.why_not_shared(), "");
  // What one writes all see: there is but one copy.
  MPI_Barrier(world().comm());
  if (world().rank() == 0) array.data()[50] = -1;
  std::int64_t seen = 0;
  for (int attempt = 0; attempt < 1'000'000'000 && seen == 0; ++attempt) {
    seen = *static_cast<volatile float*>(array.data() + 50) == -1.0F ? 1 : 0;
  }
  all_reduce_sum(world(), std::span(&seen, 1));
  EXPECT_EQ(seen, world().size());
}

TEST(SharedArray, IsTheSameOnAllHosts) {
  // As if ranks were dealt out to two hosts, to hosts of two, and to one each; more than one piece of a broadcast.
  for (const int part : {world().rank() % 2, world().rank() / 2, world().rank()}) {
    expect_all(exchanged(3'000'000, 1'200'000, part), 3'000'000);
    expect_all(exchanged(10, 3, part), 10);
  }
  EXPECT_FALSE(exchanged(10, 3, world().rank()).is_shared());
}

TEST(SharedArray, MayBeEmptyOrOnesOwn) {
  expect_all(exchanged(0, 1, 0), 0);
  SharedArray own(std::vector<float>{1, 2, 3});
  const SharedArray moved = std::move(own);
  EXPECT_EQ(moved.size(), 3U);
  EXPECT_EQ(moved[2], 3.0F);
  EXPECT_FALSE(moved.is_shared());
  EXPECT_TRUE(SharedArray().empty());
}

TEST(SharedArray, IsGivenBackByEachRankAlone) {
  // Rank 0's error is its own: it comes out though the others still hold the array.
  const bool first = world().rank() == 0;
  bool came_out = false;
  try {
    const SharedArray array = exchanged(100, 10, 0);
    if (!first) MPI_Barrier(world().comm());
    throw std::runtime_error("unwinds");
  } catch (const std::runtime_error&) {
    came_out = true;
  }
  if (first) MPI_Barrier(world().comm());
  EXPECT_TRUE(came_out);
}

TEST(SharedArray, WithoutRoomForItEachRankHasItsOwn) {
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  // Rank 0 makes the memory, and may make no file so large.
  struct rlimit small = before;
  small.rlim_cur = 1 << 20;
  const bool limited = world().rank() == 0;
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, limited ? &small : &before), 0);
  const SharedArray array = exchanged(1'000'000, 1000, 0);
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  expect_all(array, 1'000'000);
  EXPECT_FALSE(array.is_shared());
  EXPECT_EQ(array.why_not_shared(), world().size() > 1 ? "4000000 bytes in /dev/shm: File too large" : "");
}

}  // namespace
}  // namespace ddp
