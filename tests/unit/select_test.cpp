// Which device each rank gets, from what all the ranks see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/device/select.hpp>
#include "support/message_of.hpp"

namespace ddp {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Gpus = std::vector<CudaVisibility::Gpu>;

const CudaVisibility::Gpu a{"GPU-aaaa", "NVIDIA H200"}, b{"GPU-bbbb", "NVIDIA H200"}, c{"GPU-cccc", "NVIDIA A100"};

RankGpus sees(const std::string& host, int local_rank, Gpus gpus) {
  return {host, local_rank, std::move(gpus), ""};
}
RankGpus blind(const std::string& host, int local_rank, const std::string& why) {
  return {host, local_rank, {}, why};
}

std::string refusal(const std::vector<RankGpus>& ranks, DeviceRequest request) {
  const auto error = test::thrown<AgreedError>([&] { (void)choose_devices(ranks, request); });
  EXPECT_EQ(error.status(), Status::wrong_use);
  return error.what();
}

TEST(ChooseDevices, TheCpuIsChosenWhenAskedForWhateverIsThere) {
  const auto choice = choose_devices({sees("n", 0, {a}), blind("n", 1, "no driver")}, DeviceRequest::cpu);
  EXPECT_THAT(choice.ordinals, IsEmpty());
  EXPECT_THAT(choice.reason, HasSubstr("CPU"));
}

class EitherRequest : public ::testing::TestWithParam<DeviceRequest> {};
INSTANTIATE_TEST_SUITE_P(Requests, EitherRequest, ::testing::Values(DeviceRequest::automatic, DeviceRequest::cuda));

TEST_P(EitherRequest, EveryRankOfAHostGetsTheGpuOfItsLocalRank) {
  const auto choice = choose_devices(
      {sees("n1", 0, {a, b}), sees("n1", 1, {a, b}), sees("n2", 0, {c, b}), sees("n2", 1, {c, b})}, GetParam());
  EXPECT_THAT(choice.ordinals, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(choice.reason, AllOf(HasSubstr("1 × NVIDIA A100"), HasSubstr("3 × NVIDIA H200")));
}

TEST_P(EitherRequest, ALauncherThatShowsEachRankItsOwnGpuIsServed) {  // --gpus-per-task=1
  EXPECT_THAT(choose_devices({sees("n", 0, {a}), sees("n", 1, {b}), sees("n", 2, {c})}, GetParam()).ordinals,
              ElementsAre(0, 0, 0));
}

TEST_P(EitherRequest, ALoneRankMayHaveAHighLocalRank) {
  EXPECT_THAT(choose_devices({sees("n", 3, {a})}, GetParam()).ordinals, ElementsAre(0));
  EXPECT_THAT(choose_devices({sees("n", 3, {a, b})}, GetParam()).ordinals, ElementsAre(1));
}

TEST_P(EitherRequest, EqualUuidsOnTwoHostsAreTwoGpus) {
  EXPECT_THAT(choose_devices({sees("n1", 0, {a}), sees("n2", 0, {a})}, GetParam()).ordinals, ElementsAre(0, 0));
}

TEST_P(EitherRequest, RanksThatSeeNoGpuBesideOthersThatDoAreRefused) {
  const auto message = refusal({sees("n1", 0, {a}), blind("n2", 0, "no NVIDIA driver on this machine"),
                                sees("n3", 0, {b}), blind("n4", 0, "CUDA_VISIBLE_DEVICES is empty")},
                               GetParam());
  EXPECT_THAT(message, AllOf(HasSubstr("ranks 1 and 3 see no GPU"), HasSubstr("n2: no NVIDIA driver on this machine"),
                             HasSubstr("2 of 4 ranks do"), HasSubstr("--device cpu")));
  EXPECT_THAT(refusal({sees("n", 0, {a}), blind("n", 1, "w")}, GetParam()), HasSubstr("rank 1 sees no GPU (n: w)"));
}

TEST_P(EitherRequest, OfManyRanksOnlyTheFirstAreNamed) {
  std::vector<RankGpus> ranks{sees("n", 0, {a})};
  for (int rank = 1; rank < 100; ++rank) ranks.push_back(blind("n", rank, "w"));
  EXPECT_THAT(refusal(ranks, GetParam()), HasSubstr("ranks 1, 2, 3, 4, 5, 6, 7, 8 and 91 more see no GPU"));
}

TEST(ChooseDevices, TwoRanksOnOneGpuAreRefusedByNameWhenCudaIsAskedFor) {
  EXPECT_EQ(refusal({sees("node7", 0, {a}), sees("node7", 1, {a})}, DeviceRequest::cuda),
            "ranks 0 and 1 share GPU GPU-aaaa on node7; use -np 1 or more GPUs, or --device cpu");
  // Four ranks, two GPUs: 0, 2 share one and 1, 3 the other.
  EXPECT_EQ(
      refusal({sees("node7", 0, {a, b}), sees("node7", 1, {a, b}), sees("node7", 2, {a, b}), sees("node7", 3, {a, b})},
              DeviceRequest::cuda),
      "ranks 0 and 2 share GPU GPU-aaaa on node7 (and so with 1 more); use -np 2 or more GPUs, or --device cpu");
}

TEST(ChooseDevices, SharingIsFoundBehindDifferentOrdinals) {
  EXPECT_THAT(refusal({sees("n", 0, {a, b}), sees("n", 1, {b, a})}, DeviceRequest::cuda),
              HasSubstr("ranks 0 and 1 share GPU GPU-aaaa on n"));
}

TEST(ChooseDevices, RanksThatWouldShareAGpuTakeTheCpuWhenLeftToChoose) {
  const auto choice = choose_devices({sees("n", 0, {a}), sees("n", 1, {a})}, DeviceRequest::automatic);
  EXPECT_THAT(choice.ordinals, IsEmpty());
  EXPECT_EQ(choice.reason, "CPU: ranks 0 and 1 would share GPU GPU-aaaa on n; use -np 1 or more GPUs");
}

TEST_P(EitherRequest, RanksShareAGpuWhenThatIsAllowed) {
  const auto one = choose_devices({sees("n", 0, {a}), sees("n", 1, {a})}, GetParam(), Sharing::allowed);
  EXPECT_THAT(one.ordinals, ElementsAre(0, 0));
  EXPECT_EQ(one.reason, "1 × NVIDIA H200, shared, for tests");
  const auto two =
      choose_devices({sees("n", 0, {a, c}), sees("n", 1, {a, c}), sees("n", 2, {a, c})}, GetParam(), Sharing::allowed);
  EXPECT_THAT(two.ordinals, ElementsAre(0, 1, 0));
  EXPECT_EQ(two.reason, "1 × NVIDIA A100 + 1 × NVIDIA H200, shared, for tests");
}

TEST_P(EitherRequest, AllowanceToShareChangesNothingForRanksThatNeedNot) {
  const auto choice = choose_devices({sees("n", 0, {a, b}), sees("n", 1, {a, b})}, GetParam(), Sharing::allowed);
  EXPECT_THAT(choice.ordinals, ElementsAre(0, 1));
  EXPECT_EQ(choice.reason, "2 × NVIDIA H200, one a rank");
}

TEST(ChooseDevices, WithNoGpuAnywhereTheReasonIsTold) {
  const std::vector<RankGpus> ranks{blind("n", 0, "CUDA_VISIBLE_DEVICES is empty"), blind("n", 1, "something else")};
  const auto choice = choose_devices(ranks, DeviceRequest::automatic);
  EXPECT_THAT(choice.ordinals, IsEmpty());
  EXPECT_EQ(choice.reason, "CPU: no CUDA device visible (CUDA_VISIBLE_DEVICES is empty)");
  EXPECT_THAT(refusal(ranks, DeviceRequest::cuda),
              AllOf(HasSubstr("no CUDA device visible (CUDA_VISIBLE_DEVICES is empty)"), HasSubstr("--device cpu"),
                    Not(HasSubstr("something else"))));
}

}  // namespace
}  // namespace ddp
