// A step of training on the CPU, after the first ones, asks for no memory: neither ours nor a library's below it.
#include <gtest/gtest.h>

#include <cstdlib>

#include <linear_ddp/optim/adam.hpp>
#include <linear_ddp/training/trainer.hpp>
#include "support/mpi_test_world.hpp"

extern "C" {
void* __libc_malloc(std::size_t bytes);                           // NOLINT: glibc's own names
void* __libc_calloc(std::size_t numel, std::size_t bytes);        // NOLINT
void* __libc_realloc(void* memory, std::size_t bytes);            // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t bytes);  // NOLINT
}

namespace {
thread_local std::int64_t allocations = 0;
}

// In place of glibc's, for the whole program.
extern "C" {
void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t numel, std::size_t bytes) {
  ++allocations;
  return __libc_calloc(numel, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  ++allocations;
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  ++allocations;
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? 12 : 0;
}
}

namespace ddp::test {
namespace {

/// How many there were until each step.
class Counter final : public TrainingObserver {
 public:
  Counter() { counts_.reserve(1000); }
  void on_step(const StepReport&) override { counts_.push_back(allocations); }
  [[nodiscard]] const std::vector<std::int64_t>& counts() const { return counts_; }

 private:
  std::vector<std::int64_t> counts_;
};

/// In the last 100 of 120 steps of one epoch over these rows.
std::int64_t allocations_of(const LinearShape& shape, std::int64_t rows, bool adam,
                            std::unique_ptr<CommunicationHook> (*make_hook)(Device&)) {
  const auto device = make_cpu_device();
  Watchdog watchdog;
  const auto group = make_mpi_group(world(), watchdog);
  Model model(*device, shape);
  DistributedDataParallel replica(world(), *device, *group, model, {.cap_mb = 1e-3, .first_mb = 1e-4});
  if (make_hook != nullptr) replica.register_comm_hook(make_hook(*device));
  Dataset data;
  data.rows = 120 * rows;
  data.in = shape.in;
  data.out = shape.out;
  data.x = std::vector<float>(static_cast<std::size_t>(data.rows * data.in), 0.5F);
  data.y = std::vector<float>(static_cast<std::size_t>(data.rows * data.out), 0.25F);
  BatchOptions options;
  options.sampler.global_batch = rows;
  options.sampler.rank = world().rank();
  options.sampler.ranks = world().size();
  const auto source = make_dataset_batches(*device, data, options);
  std::unique_ptr<Optimizer> optimizer;
  if (adam) {
    optimizer = std::make_unique<Adam>(*device, model, AdamOptions{});
  } else {
    optimizer = std::make_unique<Sgd>(*device, model, SgdOptions{.momentum = 0.9});
  }
  Counter counter;
  Trainer trainer(*device, replica, *optimizer, *source, counter);
  TrainerOptions every_step;
  every_step.log_every = 1;
  trainer.run(every_step);
  group->close();
  EXPECT_EQ(counter.counts().size(), 120U);
  return counter.counts().back() - counter.counts()[19];
}

TEST(SteadyStep, AsksForNoMemory) {
  const std::int64_t before = allocations;
  int* volatile one = new int;  // not to be left out
  delete one;
  ASSERT_EQ(allocations, before + 1) << "they are counted";
  const auto halves = [](Device& device) { return make_half_hook(device, HalfType::bf16); };
  for (const LinearShape& shape :
       {LinearShape{.in = 10, .out = 10}, LinearShape{.in = 300, .out = 1},
        LinearShape{.in = 40, .out = 7, .hidden = {50, 30}, .activation = Activation::gelu}}) {
    EXPECT_EQ(allocations_of(shape, 40, false, nullptr), 0) << shape.description();
    EXPECT_EQ(allocations_of(shape, 40, true, nullptr), 0) << shape.description();
    EXPECT_EQ(allocations_of(shape, 2000, false, nullptr), 0) << shape.description();
    EXPECT_EQ(allocations_of(shape, 40, false, halves), 0) << shape.description();
  }
}

}  // namespace
}  // namespace ddp::test
