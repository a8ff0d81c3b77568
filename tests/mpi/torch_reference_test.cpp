// Recorded runs of PyTorch's DistributedDataParallel, reproduced step by step on every backend: one case a recording,
// those whose number of ranks is ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include <linear_ddp/launch/collectives.hpp>
#include <linear_ddp/nn/activation.hpp>
#include <linear_ddp/optim/adam.hpp>
#include <linear_ddp/optim/lr_schedule.hpp>
#include <linear_ddp/optim/sgd.hpp>
#include <linear_ddp/parallel/distributed_data_parallel.hpp>
#include "support/backends.hpp"
#include "support/torch_run.hpp"

namespace ddp::test {

// Found by gtest when it prints a parameter.
void PrintTo(const TorchRun& run, std::ostream* stream) {
  *stream << run.name;
}

namespace {

/// Both sides round in float; products are summed in another order than PyTorch's. Reached: 2.3e-7 and 8e-8.
constexpr double loss_tolerance = 1e-6;       // relative
constexpr double parameter_tolerance = 5e-7;  // absolute plus relative, after 100 steps or fewer

class TorchReferenceTest : public ::testing::TestWithParam<std::tuple<Backend, TorchRun>> {
 protected:
  static double option(const TorchRun& run, const char* name, double otherwise) {
    const auto at = run.optimizer_numbers.find(name);
    return at == run.optimizer_numbers.end() ? otherwise : at->second;
  }

  static std::unique_ptr<Optimizer> make_optimizer(Device& device, Model& model, const TorchRun& run) {
    const GradientOptions gradient{.clip_grad_norm = run.clip_grad_norm};
    if (run.optimizer == "sgd") {
      const SgdOptions options{.lr = option(run, "lr", 0.001),
                               .momentum = option(run, "momentum", 0),
                               .dampening = option(run, "dampening", 0),
                               .weight_decay = option(run, "weight_decay", 0),
                               .nesterov = option(run, "nesterov", 0) != 0};
      return std::make_unique<Sgd>(device, model, options, gradient);
    }
    const bool decoupled = run.optimizer == "adamw";
    const AdamOptions options{.lr = option(run, "lr", 0.001),
                              .weight_decay = option(run, "weight_decay", decoupled ? 0.01 : 0),
                              .amsgrad = option(run, "amsgrad", 0) != 0,
                              .decoupled = decoupled};
    return std::make_unique<Adam>(device, model, options, gradient);
  }

  static LrSchedule schedule(const TorchRun& run) {
    const auto number = [&](const char* name) { return run.schedule_numbers.at(name); };
    const auto steps = [&](const char* name) { return static_cast<std::int64_t>(number(name)); };
    using Kind = LrSchedule::Kind;
    if (run.schedule == "step") return {.kind = Kind::step, .steps = steps("step_size"), .gamma = number("gamma")};
    if (run.schedule == "cosine") {
      return {.kind = Kind::cosine, .steps = steps("T_max"), .eta_min = number("eta_min")};
    }
    if (run.schedule == "linear") {
      return {.kind = Kind::linear,
              .steps = steps("total_iters"),
              .start_factor = number("start_factor"),
              .end_factor = number("end_factor")};
    }
    return {};
  }

  static LossKind loss_of(const TorchRun& run) {
    static const std::map<std::string, LossKind> kinds{{"mse", LossKind::mse},
                                                       {"huber", LossKind::huber},
                                                       {"bce_with_logits", LossKind::bce_with_logits},
                                                       {"cross_entropy", LossKind::cross_entropy}};
    return kinds.at(run.loss);
  }

  static LinearShape shape_of(const TorchRun& run) {
    return {.in = run.layers.front(),
            .out = run.layers.back(),
            .bias = run.bias,
            .hidden = {run.layers.begin() + 1, run.layers.end() - 1},
            .activation = activation_of(run.activation).value_or(Activation::none)};
  }

  /// Recordings number the layers, without the activations between them.
  static std::string recorded_name(std::size_t slot, const TorchRun& run) {
    const std::size_t tensors = run.bias ? 2 : 1;
    return std::to_string(slot / tensors) + (slot % tensors == 0 ? ".weight" : ".bias");
  }

  /// Gradients that travel as halves: ours and PyTorch's, some 1e-8 apart, may lie on two sides of the middle between
  /// two halves, which are 2^-10 of their size apart at most. One such step of the parameters is allowed for.
  static double tolerance_of(const TorchRun& run) {
    if (run.comm_hook.empty()) return parameter_tolerance;
    double largest = 0;
    for (const auto& [name, tensor] : run.grad1) {
      for (const float value : tensor.values) largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    return parameter_tolerance + option(run, "lr", 0.001) * 0x1p-10 * largest;
  }

  static std::vector<float> on_host(Device& device, std::span<const float> values) {
    std::vector<float> copy(values.size());
    device.download(copy.data(), values.data(), values.size_bytes());
    return copy;
  }

  /// The largest |ours - theirs| / (1 + |theirs|) over a recorded set of tensors.
  static double deviation(const std::map<std::string, RecordedTensor>& recorded, std::span<const float> flat,
                          const ParameterLayout& layout, const TorchRun& run) {
    double largest = 0;
    for (std::size_t i = 0; i < layout.slots().size(); ++i) {
      const TensorSlot& slot = layout.slots()[i];
      const auto& theirs = recorded.at(recorded_name(i, run)).values;
      EXPECT_EQ(static_cast<std::int64_t>(theirs.size()), slot.numel);
      for (std::size_t at = 0; at < theirs.size(); ++at) {
        const auto expected = static_cast<double>(theirs[at]);
        const auto actual = static_cast<double>(flat[static_cast<std::size_t>(slot.offset) + at]);
        largest = std::max(largest, std::abs(actual - expected) / (1 + std::abs(expected)));
      }
    }
    return largest;
  }
};

TEST_P(TorchReferenceTest, LossesGradientsAndParametersAgree) {
  const auto& [backend, run] = GetParam();
  if (run.world_size != world().size()) GTEST_SKIP() << "needs " << run.world_size << " ranks";

  const auto [device, reason] = device_for(backend);
  if (!device) GTEST_SKIP() << reason;

  Watchdog watchdog;
  const auto group = backend == Backend::cpu ? make_mpi_group(world(), watchdog)
                                             : make_nccl_group(world(), *device, watchdog, std::chrono::seconds(60));
  Model model(*device, shape_of(run), {.kind = loss_of(run)});
  for (std::size_t slot = 0; world().rank() == 0 && slot < model.layout().slots().size(); ++slot) {
    model.upload(slot, run.initial.at(recorded_name(slot, run)).values);
  }
  DistributedDataParallel replica(world(), *device, *group, model, {.cap_mb = run.bucket_cap_mb});
  ASSERT_TRUE(run.comm_hook.empty() || run.comm_hook == "fp16");
  if (run.comm_hook == "fp16") replica.register_comm_hook(make_half_hook(*device, HalfType::fp16));
  const auto optimizer = make_optimizer(*device, model, run);
  const LrSchedule lr = schedule(run);

  const int rank = world().rank();
  const auto& own_losses = run.losses.at(static_cast<std::size_t>(rank));
  Buffer<float> x(*device, run.batch * model.shape().in), y(*device, run.batch * model.losses_of_a_row());
  Buffer<double> loss_sum(*device, 1);
  double worst_loss = 0, worst_gradient = 0, mean_of_ranks = 0;
  for (std::int64_t step = 0; step < run.steps; ++step) {
    // A rank that has run out of batches joins the others' steps with no rows, as under DDP's join.
    Batch batch;
    if (step < run.steps_of(rank)) {
      x.upload(run.x(rank, step));
      y.upload(run.y(rank, step));
      batch = {run.batch, x.data(), y.data()};
      double sum = 0;
      model.loss_sum(batch, loss_sum.data());
      loss_sum.download({&sum, 1});
      const double loss = sum / static_cast<double>(batch.rows * model.losses_of_a_row());
      const double expected = own_losses.at(static_cast<std::size_t>(step));
      worst_loss = std::max(worst_loss, std::abs(loss - expected) / std::abs(expected));
    }
    // (loss / accumulate).backward(), without an all-reduce (no_sync) until the last batch of an optimizer's step.
    const StepPart part{step % run.accumulate == 0, (step + 1) % run.accumulate == 0};
    replica.backward(batch, static_cast<double>(batch.rows * run.world_size * run.accumulate), part);

    if (part.first) mean_of_ranks = 0;
    for (int r = 0; r < run.world_size; ++r) {
      if (step < run.steps_of(r)) {
        mean_of_ranks += run.losses[static_cast<std::size_t>(r)][static_cast<std::size_t>(step)] /
                         static_cast<double>(run.world_size * run.accumulate);
      }
    }
    if (!part.last) continue;
    worst_loss = std::max(worst_loss, std::abs(static_cast<double>(replica.loss()) - mean_of_ranks) / mean_of_ranks);
    if (step + 1 == run.accumulate) {
      worst_gradient = deviation(run.grad1, on_host(*device, model.gradients()), model.layout(), run);
    }
    optimizer->set_lr(lr.at(option(run, "lr", 0.001), step / run.accumulate));
    optimizer->step();
  }
  std::vector<double> worst{worst_loss, worst_gradient,
                            deviation(run.final, on_host(*device, model.parameters()), model.layout(), run)};
  all_reduce_max(world(), worst);
  EXPECT_LE(worst[0], loss_tolerance);
  EXPECT_LE(worst[1], parameter_tolerance);
  EXPECT_LE(worst[2], tolerance_of(run));
  EXPECT_NO_THROW(replica.require_equal_replicas());
  RecordProperty("largest_deviation", ::testing::PrintToString(worst));
  if (rank == 0) {
    std::cout << run.name << ": largest deviation of a loss " << worst[0] << ", of the first gradient " << worst[1]
              << ", of a final parameter " << worst[2] << "\n";
  }
  group->close();
}

const auto name = [](const auto& recording) { return std::get<TorchRun>(recording.param).name; };

INSTANTIATE_TEST_SUITE_P(Cpu, TorchReferenceTest,
                         ::testing::Combine(::testing::Values(Backend::cpu), ::testing::ValuesIn(find_torch_runs())),
                         name);
INSTANTIATE_TEST_SUITE_P(Gpu, TorchReferenceTest,
                         ::testing::Combine(::testing::Values(Backend::gpu), ::testing::ValuesIn(find_torch_runs())),
                         name);

}  // namespace
}  // namespace ddp::test
