// The all-reduce of the MPI group through memory that a host's ranks share: the right sums to the last bit, in rank
// order, whatever the sizes, delays and hosts. Expected values are made from all ranks' inputs, which every rank knows.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <typeinfo>
#include <vector>

#include <linear_ddp/comm/process_group.hpp>
#include "support/mpi_test_world.hpp"

namespace ddp {
namespace {

using test::world;

/// Values of many magnitudes, whose sum shows the order in which they were added; bytes whose sum is none too large.
template <class T>
std::vector<T> pool_of(int rank) {
  std::mt19937_64 engine(static_cast<unsigned>(rank));
  std::vector<T> values((4 << 20) / sizeof(T));
  for (T& value : values) {
    const std::uint64_t bits = engine();
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(static_cast<std::int64_t>(bits) >> bits % 16);
    } else {
      value = static_cast<T>(sizeof(T) == 1 ? bits % 64 : bits);
    }
  }
  return values;
}

/// Others for each number of a call.
template <class T>
std::span<const T> values_of(int rank, std::size_t numel, unsigned call) {
  static std::map<int, std::vector<T>> pools;
  if (!pools.contains(rank)) pools[rank] = pool_of<T>(rank);
  return std::span(pools[rank]).subspan(call, numel);
}

template <class T>
T combined(T x, T y, Reduction reduction) {
  if (reduction == Reduction::min) return std::min(x, y);
  if (reduction == Reduction::max) return std::max(x, y);
  if constexpr (std::is_floating_point_v<T>)
    return x + y;
  else
    return static_cast<T>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y));
}

/// Ranks [first, first + count) in rank order.
template <class T>
std::vector<T> in_rank_order(int first, int count, std::size_t numel, unsigned call, Reduction reduction) {
  const auto own = values_of<T>(first, numel, call);
  std::vector<T> result(own.begin(), own.end());
  for (int rank = first + 1; rank < first + count; ++rank) {
    const auto values = values_of<T>(rank, numel, call);
    for (std::size_t i = 0; i < numel; ++i) result[i] = combined(result[i], values[i], reduction);
  }
  return result;
}

/// The ranks of each host in rank order, then the hosts, two at most; `ranks` on the first host.
template <class T>
std::vector<T> by_hosts(int ranks, std::size_t numel, unsigned call, Reduction reduction) {
  const int first = std::min(ranks, world().size());
  std::vector<T> result = in_rank_order<T>(0, first, numel, call, reduction);
  if (first == world().size()) return result;
  const auto others = in_rank_order<T>(first, world().size() - first, numel, call, reduction);
  for (std::size_t i = 0; i < numel; ++i) result[i] = combined(result[i], others[i], reduction);
  return result;
}

template <class T>
bool same_bits(std::span<const T> x, std::span<const T> y) {
  return x.size() == y.size() && (y.empty() || std::memcmp(x.data(), y.data(), x.size_bytes()) == 0);
}

template <class Check>
void for_each_type(const Check& check) {
  check(float{});
  check(double{});
  check(std::int64_t{});
  check(std::uint8_t{});
}

/// 0, 1, odd ones, and those around the sizes at which the way of the values changes: in bytes a little below, at and
/// above 1 KiB (a message every rank sums), 8 KiB (a block), 1 MiB (a chunk) and 2 MiB (a message of MPI's).
std::vector<std::size_t> sizes_of(std::size_t value_bytes) {
  std::vector<std::size_t> numels{0, 1, 3, 1001, 3'000'003 / value_bytes};
  for (const std::size_t bytes : {64U, 1024U, 8192U, 16'384U, 32'768U, 524'288U, 1'048'576U, 2'097'152U}) {
    for (const std::size_t numel : {bytes / value_bytes - 1, bytes / value_bytes, bytes / value_bytes + 1}) {
      numels.push_back(numel);
    }
  }
  return numels;
}

class HostGroups : public ::testing::Test {
 protected:
  std::unique_ptr<ProcessGroup> make_group(int part = 0) { return make_mpi_group(world(), watchdog_, part); }

  /// Sums and extremes of every type and size. The values lie `offset` values from the begin of registered memory, or
  /// in any memory.
  void check_all(ProcessGroup& group, int ranks_of_first_host, bool registered, std::size_t offset) {
    for_each_type([&]<class T>(T) {
      const auto numels = sizes_of(sizeof(T));
      const std::size_t largest = *std::max_element(numels.begin(), numels.end()) + offset;
      Buffer<T> buffer(*device_, static_cast<std::int64_t>(largest), MemoryUse::communication);
      void* registration = registered ? group.register_memory(buffer.data(), buffer.span().size_bytes()) : nullptr;
      EXPECT_EQ(registration != nullptr, registered && world().size() > 1);
      unsigned call = 0;
      for (const std::size_t numel : numels) {
        for (const Reduction reduction : {Reduction::sum, Reduction::min, Reduction::max}) {
          const auto own = values_of<T>(world().rank(), numel, ++call);
          const std::span<T> values = buffer.span().subspan(offset, numel);
          std::copy(own.begin(), own.end(), values.begin());
          group.all_reduce(values, reduction);
          EXPECT_TRUE(same_bits<T>(values, by_hosts<T>(ranks_of_first_host, numel, call, reduction)))
              << typeid(T).name() << ", " << numel << ", reduction " << static_cast<int>(reduction);
        }
      }
      group.deregister_memory(registration);
    });
  }

  Watchdog watchdog_;
  std::unique_ptr<Device> device_ = make_cpu_device();
};

TEST_F(HostGroups, CombineInRankOrderWhereverTheValuesLie) {
  const auto group = make_group();
  check_all(*group, world().size(), false, 0);
  check_all(*group, world().size(), true, 0);
  check_all(*group, world().size(), true, 3);
  group->close();
}

// As if ranks 0 and 1 had a host and the others one.
TEST_F(HostGroups, CombineTheRanksOfEachHostAndThenTheHosts) {
  if (world().size() < 3) GTEST_SKIP() << "one host";
  const auto group = make_group(world().rank() / 2);
  check_all(*group, 2, false, 0);
  check_all(*group, 2, true, 0);
  group->close();
}

TEST_F(HostGroups, OfOneRankEachLeaveAllToMpi) {
  const auto group = make_group(world().rank());
  std::vector<std::int64_t> values(100'000, world().rank() + 1);
  group->all_reduce(std::span(values));
  EXPECT_EQ(values, std::vector<std::int64_t>(100'000, world().size() * (world().size() + 1) / 2));
  group->close();
}

// A fast rank must not overtake a slow one: thousands of messages of all kinds, and now and then a rank that is late.
TEST_F(HostGroups, StayRightWhenRanksAreLate) {
  const auto group = make_group(), other = make_group();
  constexpr std::size_t largest = 100'000;
  Buffer<std::int64_t> shared(*device_, largest, MemoryUse::communication);
  void* registration = group->register_memory(shared.data(), shared.span().size_bytes());
  std::vector<std::int64_t> own(largest);
  std::mt19937 same(7), late(static_cast<unsigned>(world().rank()));
  std::int64_t wrong = 0;
  for (int call = 0; call < 6000; ++call) {
    const bool small = same() % 4 != 0, registered = same() % 2 == 0;
    const std::size_t numel = same() % (small ? 600 : largest);
    ProcessGroup& one = registered || same() % 2 == 0 ? *group : *other;
    const std::span<std::int64_t> values = (registered ? shared.span() : std::span(own)).first(numel);
    for (std::size_t i = 0; i < numel; ++i) values[i] = static_cast<std::int64_t>(i) + call * (world().rank() + 1);
    if (late() % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(late() % 300));
    one.all_reduce(values);
    const std::int64_t ranks = world().size();
    for (std::size_t i = 0; i < numel; ++i) {
      wrong += values[i] == ranks * static_cast<std::int64_t>(i) + call * (ranks * (ranks + 1) / 2) ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0);
  group->deregister_memory(registration);
  other->close();
  group->close();
}

TEST_F(HostGroups, LeaveValuesAsTheyWereWhenMemoryIsSharedAndWithdrawn) {
  const auto group = make_group();
  const auto own = values_of<float>(world().rank(), 1'000'001, 1);
  Buffer<float> buffer(*device_, 1'000'001, MemoryUse::communication);
  buffer.upload(own);
  void* registration = group->register_memory(buffer.data(), buffer.span().size_bytes());
  EXPECT_TRUE(same_bits<float>(buffer.span(), own));
  group->close();
  group->deregister_memory(registration);
  EXPECT_TRUE(same_bits<float>(buffer.span(), own));
  // It is this rank's own again, and nothing is left of the memory that was shared.
  buffer.upload(values_of<float>(world().rank(), 1'000'001, 2));
  MPI_Barrier(world().comm());
  EXPECT_TRUE(same_bits<float>(buffer.span(), values_of<float>(world().rank(), 1'000'001, 2)));
}

/// Rank 0, which makes the memory to share, may make no file above `bytes` while `work` runs.
void without_room(rlim_t bytes, const std::function<void()>& work) {
  struct rlimit before {};
  EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit = before;
  limit.rlim_cur = bytes;
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, world().rank() == 0 ? &limit : &before), 0);
  work();
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
}

TEST_F(HostGroups, WithoutMemoryToShareLeaveAllToMpi) {
  std::unique_ptr<ProcessGroup> group;
  without_room(4096, [&] { group = make_group(); });
  Buffer<std::int64_t> buffer(*device_, 100'000, MemoryUse::communication);
  EXPECT_EQ(group->register_memory(buffer.data(), buffer.span().size_bytes()), nullptr);
  for (const std::size_t numel : {0U, 1U, 100'000U}) {
    std::fill(buffer.data(), buffer.data() + numel, world().rank() + 1);
    group->all_reduce(buffer.span().first(numel));
    const std::int64_t sum = world().size() * (world().size() + 1) / 2;
    EXPECT_EQ(std::count(buffer.data(), buffer.data() + numel, sum), static_cast<std::ptrdiff_t>(numel));
  }
  group->close();
}

TEST_F(HostGroups, CopyValuesOfMemoryThatCannotBeShared) {
  const auto group = make_group();
  Buffer<double> buffer(*device_, 400'000, MemoryUse::communication);
  void* registration = nullptr;
  without_room(1 << 20, [&] { registration = group->register_memory(buffer.data(), buffer.span().size_bytes()); });
  EXPECT_EQ(registration, nullptr);
  buffer.upload(values_of<double>(world().rank(), 400'000, 1));
  group->all_reduce(buffer.span());
  EXPECT_TRUE(same_bits<double>(buffer.span(), in_rank_order<double>(0, world().size(), 400'000, 1, Reduction::sum)));
  // Memory that is not whole pages is not taken either.
  EXPECT_EQ(group->register_memory(buffer.data() + 1, 800), nullptr);
  group->close();
}

}  // namespace
}  // namespace ddp
