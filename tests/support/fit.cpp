#include "support/fit.hpp"

#include <gmock/gmock.h>

#include <linear_ddp/comm/process_group.hpp>
#include <linear_ddp/data/batch_source.hpp>
#include <linear_ddp/optim/sgd.hpp>
#include <linear_ddp/parallel/distributed_data_parallel.hpp>
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

class Losses : public TrainingObserver {
 public:
  void on_step(const StepReport& report) override { values.push_back(report.loss); }
  std::vector<float> values;
};

}  // namespace

Fit fit(const Dataset& data, const FitOptions& options) {
  const auto device = make_cpu_device();
  Watchdog watchdog;
  const auto group = make_mpi_group(world(), watchdog);
  const bool has_logits = options.loss == LossKind::cross_entropy;
  Model model(*device, {data.in, has_logits ? std::ssize(data.classes) : data.out, options.bias},
              {.kind = options.loss});
  Losses losses;
  Fit result;
  {
    DistributedDataParallel replica(world(), *device, *group, model);
    Sgd optimizer(*device, model, {.lr = options.lr, .momentum = options.momentum});
    const auto source =
        make_dataset_batches(*device, data,
                             {.sampler = {.rank = world().rank(),
                                          .ranks = world().size(),
                                          .global_batch = options.global_batch == 0 ? data.rows : options.global_batch,
                                          .shuffle = options.global_batch != 0,
                                          .seed = 7}});
    Trainer trainer(*device, replica, optimizer, *source, losses);
    TrainerOptions run;
    run.epochs = options.epochs;
    run.log_every = 1;
    result.training = trainer.run(run);
    replica.require_equal_replicas();
  }
  result.losses = std::move(losses.values);
  result.weight = model.download(0);
  if (options.bias) result.bias = model.download(1);
  result.scores = evaluate(world(), *device, model, data);
  group->close();
  return result;
}

Fit fit(const TableShare& share, const FitOptions& options) {
  return fit(gather_dataset(world(), share), options);
}

Fit fit_standardized(TableShare share, const FitOptions& options) {
  const Standardizer standardizer(world(), share);
  standardizer.apply(share);
  Fit result = fit(share, options);
  standardizer.fold_into(result.weight, result.bias);
  return result;
}

void expect_base_model(const TableShare& share) {
  using ::testing::ElementsAre;
  using ::testing::FloatNear;
  // The slowest part of the error shrinks by a tenth at each step: after 300 float's rounding is left.
  const Fit base = fit(share, {.lr = 0.3, .epochs = 300});
  EXPECT_THAT(base.bias, ElementsAre(FloatNear(1, 1e-5F)));
  EXPECT_THAT(base.weight, ElementsAre(FloatNear(2, 1e-5F), FloatNear(-3, 1e-5F)));
  EXPECT_LT(base.scores.loss, 1e-10);
  EXPECT_EQ(base.scores.rows, share.total_rows);
}

void expect_base_case(const TableShare& share, std::int64_t rows) {
  EXPECT_EQ(share.total_rows, rows);
  expect_base(share, static_cast<std::size_t>(rows));
  expect_base_model(share);
}

}  // namespace ddp::test
