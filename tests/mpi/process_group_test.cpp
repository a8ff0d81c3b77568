// Collectives on every backend: MPI on host memory, NCCL on GPU memory. Expected values are closed forms.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/launch/collectives.hpp>
#include "support/backends.hpp"

namespace ddp {
namespace {

using test::Backend;
using test::world;
using namespace std::chrono_literals;

class ProcessGroups : public test::DeviceSuite {
 protected:
  void SetUp() override {
    DeviceSuite::SetUp();
    if (!IsSkipped()) group_ = make_group();
  }
  void TearDown() override {
    if (group_) group_->close();
  }

  std::unique_ptr<ProcessGroup> make_group() {
    return GetParam() == Backend::cpu ? make_mpi_group(world(), watchdog_)
                                      : make_nccl_group(world(), device(), watchdog_, 60s);
  }
  ProcessGroup& group() { return *group_; }

  /// Runs a collective on a copy of `values` in the device's memory, in the right order with the compute queue, and
  /// returns what becomes of them.
  template <class T, class Work>
  std::vector<T> run(const std::vector<T>& values, const Work& work) {
    Buffer<T> buffer(device(), static_cast<std::int64_t>(values.size()));
    buffer.upload(values);
    device().wait(Queue::communication, Queue::compute);
    work(buffer.span());
    device().wait(Queue::compute, Queue::communication);
    std::vector<T> result(values.size());
    buffer.download(result);
    return result;
  }

 private:
  Watchdog watchdog_;
  std::unique_ptr<ProcessGroup> group_;
};

DDP_INSTANTIATE_FOR_BACKENDS(ProcessGroups);

constexpr std::size_t sizes[] = {0, 1, 7, 1000, 1'048'577};

/// Small whole numbers, so that sums over four ranks are exact in every type.
template <class T>
T value_of(int rank, std::size_t at) {
  return static_cast<T>((static_cast<std::size_t>(rank) * 3 + at) % 11);
}

template <class T>
std::vector<T> values_of(int rank, std::size_t numel, std::size_t first = 0) {
  std::vector<T> values(numel);
  for (std::size_t at = 0; at < numel; ++at) values[at] = value_of<T>(rank, first + at);
  return values;
}

/// What the values at one place become when all ranks' are combined.
template <class T, class Combine>
std::vector<T> combined(std::size_t numel, const Combine& combine, std::size_t first = 0) {
  std::vector<T> result = values_of<T>(0, numel, first);
  for (int rank = 1; rank < world().size(); ++rank) {
    for (std::size_t at = 0; at < numel; ++at) result[at] = combine(result[at], value_of<T>(rank, first + at));
  }
  return result;
}

template <class Check>
void for_each_type(const Check& check) {
  check(float{});
  check(double{});
  check(std::int64_t{});
  check(std::uint8_t{});
}

TEST_P(ProcessGroups, RegisteredMemoryChangesNoResult) {
  constexpr std::int64_t numel = 600'000;
  const auto own = values_of<float>(world().rank(), numel);
  const auto sum = combined<float>(numel, [](float x, float y) { return x + y; });
  Buffer<float> buffer(device(), numel, MemoryUse::communication);
  void* registration = group().register_memory(buffer.data(), buffer.span().size_bytes());
  for (int round = 0; round < 2; ++round) {
    buffer.upload(own);
    device().wait(Queue::communication, Queue::compute);
    group().all_reduce(buffer.span());
    device().wait(Queue::compute, Queue::communication);
    std::vector<float> result(own.size());
    buffer.download(result);
    EXPECT_TRUE(result == sum);
  }
  device().synchronize();
  group().deregister_memory(registration);
}

TEST_P(ProcessGroups, KnowTheirRanks) {
  EXPECT_EQ(group().rank(), world().rank());
  EXPECT_EQ(group().size(), world().size());
  EXPECT_EQ(group().backend(), GetParam() == Backend::cpu ? "mpi" : "nccl");
}

TEST_P(ProcessGroups, AllReduceCombinesAllRanksValues) {
  for_each_type([&]<class T>(T) {
    const auto sum = [](T x, T y) { return static_cast<T>(x + y); };
    const auto min = [](T x, T y) { return std::min(x, y); };
    const auto max = [](T x, T y) { return std::max(x, y); };
    for (const std::size_t numel : sizes) {
      const auto own = values_of<T>(world().rank(), numel);
      const auto reduce = [&](Reduction reduction) {
        return run(own, [&](std::span<T> values) { group().all_reduce(values, reduction); });
      };
      EXPECT_TRUE(reduce(Reduction::sum) == combined<T>(numel, sum)) << typeid(T).name() << " sum of " << numel;
      EXPECT_TRUE(reduce(Reduction::min) == combined<T>(numel, min)) << typeid(T).name() << " min of " << numel;
      EXPECT_TRUE(reduce(Reduction::max) == combined<T>(numel, max)) << typeid(T).name() << " max of " << numel;
    }
  });
}

TEST_P(ProcessGroups, ReduceScatterGivesEachRankItsPartOfTheSum) {
  const auto rank = static_cast<std::size_t>(world().rank()), ranks = static_cast<std::size_t>(world().size());
  for_each_type([&]<class T>(T) {
    for (const std::size_t part : sizes) {
      Buffer<T> own(device(), static_cast<std::int64_t>(part));
      (void)run(values_of<T>(world().rank(), part * ranks),
                [&](std::span<T> all) { group().reduce_scatter(std::span<const T>(all), own.span()); });
      std::vector<T> result(part);
      own.download(result);
      const auto sum = [](T x, T y) { return static_cast<T>(x + y); };
      EXPECT_TRUE(result == combined<T>(part, sum, rank * part)) << typeid(T).name() << ", " << part;
    }
  });
}

TEST_P(ProcessGroups, AllGatherPutsTheRanksValuesOneAfterTheOther) {
  const auto ranks = static_cast<std::size_t>(world().size());
  for_each_type([&]<class T>(T) {
    for (const std::size_t part : sizes) {
      Buffer<T> all(device(), static_cast<std::int64_t>(part * ranks));
      (void)run(values_of<T>(world().rank(), part),
                [&](std::span<T> own) { group().all_gather(std::span<const T>(own), all.span()); });
      std::vector<T> result(part * ranks), expected;
      all.download(result);
      for (int rank = 0; rank < world().size(); ++rank) {
        const auto values = values_of<T>(rank, part);
        expected.insert(expected.end(), values.begin(), values.end());
      }
      EXPECT_TRUE(result == expected) << typeid(T).name() << ", " << part;
    }
  });
}

TEST_P(ProcessGroups, BroadcastGivesEveryRankTheRootsValues) {
  for_each_type([&]<class T>(T) {
    for (const std::size_t numel : sizes) {
      for (int root = 0; root < world().size(); ++root) {
        const auto result =
            run(values_of<T>(world().rank(), numel), [&](std::span<T> values) { group().broadcast(values, root); });
        EXPECT_TRUE(result == values_of<T>(root, numel)) << typeid(T).name() << ", " << numel << " of " << root;
      }
    }
  });
}

TEST_P(ProcessGroups, AllReduceKeepsWhatIsNotFinite) {
  std::vector<float> own{1, 1};
  if (world().rank() == world().size() - 1) own = {NAN, INFINITY};
  const auto sums = run(own, [&](std::span<float> values) { group().all_reduce(values); });
  EXPECT_TRUE(std::isnan(sums[0]));
  EXPECT_TRUE(std::isinf(sums[1]));
}

// Gradients are reduced while the host runs ahead by several steps: the queues alone keep the order. With n ranks that
// bring 1 to n, the sum is S = n (n + 1) / 2 at first and n times as much at each further step, and the parameters are
// minus the sum of all of them.
TEST_P(ProcessGroups, QueuesWaitForEachOtherWithoutTheHost) {
  constexpr std::int64_t numel = 4099;
  constexpr int steps = 6;
  Buffer<float> parameters(device(), numel), gradients(device(), numel), lr(device(), 1);
  lr.upload(std::vector<float>{1});
  gradients.upload(std::vector<float>(numel, static_cast<float>(world().rank() + 1)));
  for (int step = 0; step < steps; ++step) {
    device().wait(Queue::communication, Queue::compute);
    group().all_reduce(gradients.span());
    device().wait(Queue::compute, Queue::communication);
    device().sgd_update({.numel = numel, .parameters = parameters.data(), .gradients = gradients.data()}, {},
                        lr.data());
  }
  double gradient = world().size() * (world().size() + 1) / 2.0, sum = 0;
  for (int step = 0; step < steps; ++step, gradient *= world().size()) sum += gradient;
  std::vector<float> result(numel);
  parameters.download(result);
  EXPECT_EQ(result, std::vector<float>(numel, static_cast<float>(-sum)));  // whole numbers below 2^24
}

TEST_P(ProcessGroups, NoRankLeavesABarrierBeforeTheLastHasCome) {
  std::this_thread::sleep_for(world().rank() * 20ms);
  const auto seconds = [] {  // the ranks of one host have one steady clock
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  std::vector<double> came{seconds()};
  group().barrier();
  const double left = seconds();
  all_reduce_max(world(), came);
  EXPECT_GE(left, came[0]);
}

TEST_P(ProcessGroups, SeveralGroupsMayExist) {
  const auto second = make_group();
  const auto sums = run(std::vector<float>{1}, [&](std::span<float> values) {
    group().all_reduce(values);
    second->all_reduce(values);
  });
  EXPECT_EQ(sums[0], static_cast<float>(world().size() * world().size()));
  second->close();
}

// As when an error unwinds: nothing to wait for, and nothing that needs a peer.
TEST_P(ProcessGroups, AGroupMayBeDestroyedWithoutBeingClosed) {
  make_group().reset();
}

TEST(Nccl, RefusesACpuDevice) {
  const auto device = make_cpu_device();
  Watchdog watchdog;
  EXPECT_THROW((void)make_nccl_group(world(), *device, watchdog, 60s), Error);
}

}  // namespace
}  // namespace ddp
