// Memory, queues and the element-wise operations of every device, against closed forms and formulas in float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/nn/model.hpp>
#include "support/backends.hpp"
#include "support/message_of.hpp"
#include "support/on_device.hpp"

namespace ddp {
namespace {

using test::Floats;
using test::OnDevice;
using test::random_floats;

class Devices : public test::DeviceSuite {};
DDP_INSTANTIATE_FOR_BACKENDS(Devices);

TEST_P(Devices, TellWhatTheyAre) {
  EXPECT_EQ(device().kind(), GetParam() == test::Backend::cpu ? "cpu" : "cuda");
  EXPECT_FALSE(device().description().empty());
}

TEST_P(Devices, MemoryIsZeroedAndAligned) {
  for (const MemoryUse use : {MemoryUse::compute, MemoryUse::communication}) {
    for (const std::int64_t numel : {1, 63, 4096, 1'000'003}) {
      Buffer<float> buffer(device(), numel, use);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
      Floats values(static_cast<std::size_t>(numel), 1);
      buffer.download(values);
      EXPECT_EQ(values, Floats(static_cast<std::size_t>(numel), 0)) << numel;
    }
  }
  const Buffer<float> none(device(), 0);
}

TEST_P(Devices, MemoryThatCannotBeHadIsAnError) {
  for (const MemoryUse use : {MemoryUse::compute, MemoryUse::communication}) {
    EXPECT_THROW((void)device().allocate(std::size_t{1} << 50U, use), Error);
  }
}

TEST_P(Devices, MemoryIsCopiedInTheOrderOfTheQueue) {
  OnDevice from(device(), {1, 2, 3, 4}), to(device(), {5, 6, 7, 8});
  device().copy(to.data() + 1, from.data(), 2 * sizeof(float));
  device().copy(from.data() + 3, to.data() + 2, sizeof(float));
  EXPECT_EQ(to.values(), (Floats{5, 1, 2, 8}));
  EXPECT_EQ(from.values(), (Floats{1, 2, 3, 2}));
}

TEST_P(Devices, ABufferIsNoLargerThanItCanBeAndHoldsNoMoreThanItHas) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(Buffer<float>(device(), -1), Error);
  EXPECT_THROW(Buffer<float>(device(), most), Error);                           // 2^65 - 4 bytes
  EXPECT_THROW(Buffer<double>(device(), (std::int64_t{1} << 61U) + 1), Error);  // 2^64 + 8
  EXPECT_THROW(Buffer<std::uint8_t>(device(), most), Error);

  Buffer<float> buffer(device(), 3);
  buffer.upload(Floats{1, 2, 3});
  Floats four(4, 5);
  EXPECT_THROW(buffer.upload(four), Error);
  EXPECT_THROW(buffer.download(four), Error);
  Floats two(2);
  buffer.download(two);
  EXPECT_EQ(two, (Floats{1, 2}));
  EXPECT_THROW(Buffer<float>().upload(two), Error);
}

TEST_P(Devices, AModelsTensorIsSetAsAWholeOrNotAtAll) {
  Model model(device(), {.in = 3, .out = 2});
  model.upload(0, Floats{1, 2, 3, 4, 5, 6});
  model.upload(1, Floats{7, 8});
  for (const std::size_t numel : {0U, 5U, 7U, 8U, 9U}) {
    EXPECT_THAT(test::message_of<Error>([&] { model.upload(0, Floats(numel, -1)); }),
                ::testing::HasSubstr("weight: it has 6 values, not " + std::to_string(numel)));
  }
  EXPECT_THROW(model.upload(1, Floats(3, -1)), Error);
  EXPECT_EQ(model.download(0), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(model.download(1), (Floats{7, 8}));
}

TEST_P(Devices, UploadsMayBeFollowedByAChangeOfTheirSource) {
  for (const std::int64_t numel : {0, 1, 1001, 262'144, 7'000'001}) {
    const Floats original = random_floats(numel, 5);
    Floats source = original;
    Buffer<float> buffer(device(), numel);
    buffer.upload(source);
    std::fill(source.begin(), source.end(), -1.0F);
    Floats result(source.size());
    buffer.download(result);
    EXPECT_TRUE(result == original) << numel;
  }
}

TEST_P(Devices, StagingBuffersSendWhatTheyHoldThen) {
  constexpr std::int64_t numel = 70'001;
  const auto buffer = device().make_staging_buffer(numel * sizeof(float));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->host()) % 64, 0U);
  for (unsigned round = 0; round < 3; ++round) {
    const Floats values = random_floats(numel, round);
    std::copy(values.begin(), values.end(), static_cast<float*>(buffer->host()));
    buffer->send();
    device().wait(Queue::compute, Queue::copy);
    Floats result(values.size());
    device().download(result.data(), buffer->device(), numel * sizeof(float));
    EXPECT_EQ(result, values);
  }
  const auto none = device().make_staging_buffer(0);
  none->send();
}

TEST_P(Devices, ManySmallUploadsKeepTheirOrder) {
  constexpr std::int64_t numel = 5;
  Buffer<float> buffer(device(), numel);
  Floats source(numel);
  for (int round = 0; round < 100; ++round) {
    std::fill(source.begin(), source.end(), static_cast<float>(round));
    buffer.upload(std::span<const float>(source).first(static_cast<std::size_t>(round % numel + 1)));
  }
  Floats result(numel);
  buffer.download(result);
  EXPECT_EQ(result, (Floats{99, 99, 99, 99, 99}));
}

TEST_P(Devices, ReplayWhatWasRecordedWithoutRunningItThen) {
  Buffer<float> value(device(), 1);
  Buffer<double> sum(device(), 1);
  value.upload(Floats{0.5F});
  const auto work = [&] {
    device().wait(Queue::communication, Queue::compute);
    device().wait(Queue::compute, Queue::communication);
    device().accumulate(value.data(), 1, 4, sum.data());
  };
  work();
  const auto recording = device().record(work);
  for (int replays = 0; replays < 3; ++replays) recording->replay();
  value.upload(Floats{2.0F});  // a recording holds where the value is, not what it was
  recording->replay();
  double result = 0;
  sum.download({&result, 1});
  EXPECT_EQ(result, 4 * 2.0 + 8.0);
}

TEST_P(Devices, ARecordingThatFailsLeavesTheDeviceUsable) {
  EXPECT_THROW(device().record([] { throw UseError("in the middle"); })->replay(), UseError);
  Buffer<float> buffer(device(), 1);
  buffer.upload(Floats{3});
  Floats result(1);
  buffer.download(result);
  EXPECT_EQ(result[0], 3.0F);
}

TEST_P(Devices, Accumulate) {
  for (const std::int64_t numel : {1, 3, 1024}) {
    Buffer<double> sums(device(), numel);
    std::vector<double> expected(static_cast<std::size_t>(numel), 100), result(expected);
    sums.upload(expected);
    for (const int factor : {2, 3}) {
      Floats values(expected.size());
      std::iota(values.begin(), values.end(), 0.5F * static_cast<float>(factor));
      for (std::size_t i = 0; i < values.size(); ++i) expected[i] += factor * static_cast<double>(values[i]);
      OnDevice on_device(device(), values);
      device().accumulate(on_device.data(), numel, factor, sums.data());
    }
    sums.download(result);
    EXPECT_EQ(result, expected);
  }
}

TEST_P(Devices, Widen) {
  for (const std::int64_t numel : {0, 1, 257, 1'500'000}) {  // more than the threads of one launch
    Floats values(static_cast<std::size_t>(numel));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1F * static_cast<float>(i % 1000);
    OnDevice from(device(), values);
    Buffer<double> to(device(), numel + 1);
    device().widen(from.data(), numel, to.data());
    std::vector<double> result(values.size() + 1);
    to.download(result);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), result.begin()));
    EXPECT_EQ(result.back(), 0) << "nothing behind the end";
  }
}

TEST_P(Devices, QueuesAndWaitsMayBeUsedFreely) {
  device().wait(Queue::compute, Queue::communication);
  device().wait(Queue::communication, Queue::compute);
  device().wait(Queue::compute, Queue::compute);
  device().synchronize();
  EXPECT_EQ(device().native(Queue::compute) == nullptr, GetParam() == test::Backend::cpu);
}

TEST(CudaVisibility, TellsWhatItSeesOrWhyNothing) {
  const CudaVisibility visible = visible_cuda_devices();
  EXPECT_EQ(visible.gpus.empty(), !visible.why_none.empty());
  for (const auto& gpu : visible.gpus) {
    EXPECT_EQ(gpu.uuid.size(), std::strlen("GPU-01234567-0123-0123-0123-0123456789ab"));
    EXPECT_EQ(gpu.uuid.substr(0, 4), "GPU-");
    EXPECT_FALSE(gpu.name.empty());
  }
}

}  // namespace
}  // namespace ddp
