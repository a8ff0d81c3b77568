#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include <linear_ddp/base/atomic_file.hpp>
#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/data/batch_source.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/preflight.hpp>
#include <linear_ddp/training/evaluation.hpp>
#include <linear_ddp/training/trainer.hpp>
#include "commands.hpp"
#include "console.hpp"
#include "model_file.hpp"
#include "objective.hpp"
#include "runtime.hpp"
#include "training_data.hpp"

namespace ddp::app {
namespace {

/// How long to train, and on how much at once.
struct Plan {
  std::int64_t global_batch = 0, steps_per_epoch = 1, epochs = 1, max_steps = 0;
  [[nodiscard]] std::int64_t total_steps() const {
    return epochs > max_steps / steps_per_epoch ? max_steps : std::min(max_steps, epochs * steps_per_epoch);
  }
  [[nodiscard]] std::int64_t total_epochs() const {
    return std::min(epochs, (total_steps() + steps_per_epoch - 1) / steps_per_epoch);
  }
};

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

/// Collective. Before any work, as is require_writable: what cannot be written must not cost a training.
Metrics open_metrics(const World& world, const TrainOptions& options) {
  return agree(world,
               [&] { return world.rank() != 0 || options.metrics.empty() ? Metrics{} : Metrics(options.metrics); });
}

Plan make_plan(const World& world, const TrainOptions& options, const std::optional<TrainingData>& data) {
  Plan plan;
  const std::int64_t ranks = world.size();
  if (data) {
    const std::int64_t rows = data->rows.rows;
    plan.global_batch = options.batch_size ? checked_product(std::min(*options.batch_size, rows), ranks, "--batch-size")
                                           : options.global_batch.value_or(256);
    if (plan.global_batch == 0 || plan.global_batch > rows) plan.global_batch = rows;
    plan.epochs = options.epochs.value_or(options.steps ? unlimited : 1);
    plan.max_steps = options.steps.value_or(unlimited);
    return plan;
  }
  plan.global_batch = options.global_batch
                          ? *options.global_batch
                          : checked_product(options.batch_size.value_or(20), ranks, "--batch-size over all ranks");
  if (plan.global_batch % ranks != 0) {
    throw UseError(fmt::format("--global-batch {} cannot be shared out evenly over {} ranks, as synthetic data must be",
                               plan.global_batch, ranks));
  }
  plan.max_steps = std::min(options.steps.value_or(unlimited), options.epochs.value_or(options.steps ? unlimited : 1));
  plan.steps_per_epoch = plan.max_steps;
  return plan;
}

std::unique_ptr<BatchSource> make_source(const World& world, Device& device, const TrainOptions& options,
                                         const std::optional<TrainingData>& data, const LinearShape& shape,
                                         const std::vector<float>& class_weight, const TorchGenerator& generator,
                                         Plan& plan) {
  if (!data) {
    return make_synthetic_batches(device, generator, shape, plan.global_batch / world.size(),
                                  checked_product(plan.steps_per_epoch, options.accumulate, "--steps and --accumulate"),
                                  options.accumulate, world.size());
  }
  BatchOptions batches;
  batches.accumulate = options.accumulate;
  batches.averaging = options.averaging;
  batches.class_weight = class_weight;
  SamplerOptions& sampler = batches.sampler;
  sampler.rank = world.rank();
  sampler.ranks = world.size();
  sampler.global_batch = plan.global_batch;
  sampler.shuffle = options.shuffle;
  sampler.seed = options.seed;
  sampler.drop_last = options.drop_last;
  auto source = make_dataset_batches(device, data->rows, batches);
  plan.steps_per_epoch = source->steps_per_epoch();
  return source;
}

/// Synthetic data: each rank draws from a seed of its own, as the original program does; rank 0's model goes to all.
void initialise(Model& model, const TrainOptions& options, const std::optional<TrainingData>& data, int rank,
                TorchGenerator& generator) {
  const auto& slots = model.layout().slots();
  std::vector<float> weight(static_cast<std::size_t>(slots[0].numel));
  std::vector<float> bias(slots.size() > 1 ? static_cast<std::size_t>(slots[1].numel) : 0);
  init_linear(generator, model.shape().in, weight, bias);
  if (options.init == "zeros") return;
  if (options.init == "torch") {
    model.upload(0, weight);
    if (!bias.empty()) model.upload(1, bias);
  } else if (rank == 0) {
    load_model(options.init, model, data && data->standardizer ? &*data->standardizer : nullptr);
  }
}

Facts facts_of(const TrainOptions& options, const std::optional<TrainingData>& data, const Device& device) {
  Facts facts = version_facts(device);
  const auto json = options.to_json();
  for (const auto& [name, value] : json.items()) {
    const bool for_rank_0_alone = name == "save" || name == "metrics" || name == "quiet";
    if (!for_rank_0_alone) facts.emplace_back("--" + name, value.dump());
  }
  if (data) facts.emplace_back("rows", std::to_string(data->rows.rows));
  return facts;
}

void require_finite(const Model& model) {
  for (std::size_t slot = 0; slot < model.layout().slots().size(); ++slot) {
    for (const float value : model.download(slot)) {
      if (!std::isfinite(value)) {
        throw Error(Status::failed, fmt::format("the trained {} is not finite: training diverged at its last step; use "
                                                "a smaller --lr, and --standardize when features differ in scale",
                                                model.layout().slots()[slot].name));
      }
    }
  }
}

std::string describe_data(const TrainOptions& options, const std::optional<TrainingData>& data, const Plan& plan,
                          int ranks) {
  if (!data) {
    return fmt::format("synthetic: {} rows a rank and step, drawn like torch.randn from seed {} + rank",
                       plan.global_batch / ranks, options.seed);
  }
  const auto& names = data->share.target_names;
  return fmt::format(
      "{}: {} rows, {} feature{} -> {}{}", options.data, data->rows.rows, data->rows.in, data->rows.in == 1 ? "" : "s",
      names.size() <= 4 ? fmt::format("{}", fmt::join(names, ", ")) : fmt::format("{} targets", names.size()),
      data->rows.classes.empty() ? "" : fmt::format(", {} classes", data->rows.classes.size()));
}

TrainerOptions make_trainer_options(const TrainOptions& options, const Plan& plan, bool synthetic) {
  TrainerOptions trainer;
  trainer.epochs = plan.epochs;
  trainer.max_steps = plan.max_steps;
  if (options.schedule.kind != LrSchedule::Kind::constant) {
    LrSchedule schedule = options.schedule;
    if (schedule.steps == 0) schedule.steps = plan.total_steps();
    trainer.lr = [schedule, lr = options.lr](std::int64_t done) { return schedule.at(lr, done); };
  }
  const std::int64_t steps = synthetic ? plan.max_steps : options.steps.value_or(unlimited);
  trainer.log_every = options.log_every.value_or(steps <= 1000 ? 1 : synthetic ? Console::stride(steps) : 0);
  return trainer;
}

nlohmann::ordered_json start_event(const World& world, const TrainOptions& options, const Device& device,
                                   const std::string& backend, const Model& model, const BatchSource& source,
                                   const Plan& plan, const TrainerOptions& trainer, bool evaluates) {
  nlohmann::ordered_json event{{"event", "start"},
                               {"version", version()},
                               {"world_size", world.size()},
                               {"device", device.kind()},
                               {"backend", backend},
                               {"parameters", model.layout().parameters()},
                               {"rows", source.rows_per_epoch()},
                               {"train_loss_is", evaluates ? "of the final parameters over all training rows"
                                                           : "the mean over the epoch's rows"}};
  event.update(options.to_json());
  // As the run uses what was left to it.
  event["global-batch"] = plan.global_batch;
  event["log-every"] = trainer.log_every;
  if (!options.data.empty() && plan.epochs != unlimited) event["epochs"] = plan.epochs;
  if (plan.max_steps != unlimited) event["steps"] = plan.max_steps;
  return event;
}

void report_result(Console& console, const TrainingResult& result, double penalty, double seconds, std::uint64_t hash) {
  const double rows_per_s = static_cast<double>(result.rows) / seconds;
  console.line("result",
               fmt::format("train loss {:.7g} after {} step{}, {:.3g} s ({:.3g} rows/s)", result.last_epoch_loss,
                           result.steps, result.steps == 1 ? "" : "s", seconds, rows_per_s));
  console.line("parameters", fmt::format("hash {:016x}, equal on all ranks", hash));
  console.event({{"event", "end"},
                 {"status", "ok"},
                 {"steps", result.steps},
                 {"epochs", result.epochs},
                 {"train_loss", result.last_epoch_loss},
                 {"objective", result.last_epoch_loss + penalty},
                 {"seconds", seconds},
                 {"rows_per_s", rows_per_s},
                 {"parameters_hash", fmt::format("{:016x}", hash)}});
}

void save(const TrainOptions& options, const Model& model, const std::optional<TrainingData>& data, Console& console) {
  Provenance provenance;
  if (data) {
    provenance = {data->share.feature_names, data->share.target_names,
                  data->standardizer ? &*data->standardizer : nullptr};
  }
  save_model(options.save, model, provenance);
  console.line("saved", options.save);
}

/// Seconds that `work` takes.
template <class Work>
double timed(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void run(const World& world, const TrainOptions& options, Watchdog& watchdog, Console& console) {
  agree(world, [&] {
    if (world.rank() == 0 && !options.save.empty()) require_writable(options.save);
  });
  // A driver may hang before there is a group, and when what was made is released. (Reading data takes what it takes.)
  auto watch = std::make_unique<Watchdog::Watch>(watchdog, "start of the devices", 0);
  const SelectedDevice selected = select_device(world, options.device);
  Device& device = *selected.device;
  const std::string backend = agree(world, [&] { return choose_backend(options.backend, device); });
  console.line("linear_ddp",
               fmt::format("{}: {}, {}, backend {}", version(), describe_ranks(world), device.description(), backend));
  console.line("device", selected.reason);
  watch.reset();

  auto data = load_data(world, options);
  const LossOptions loss = agree(world, [&] { return make_loss(options, data ? &*data : nullptr); });
  Plan plan = agree(world, [&] { return make_plan(world, options, data); });
  watch = std::make_unique<Watchdog::Watch>(watchdog, "start of the group", 0);
  require_agreement(world, facts_of(options, data, device), "the ranks do not agree, so nothing was started",
                    "start the same program with the same options, data and libraries on every node");
  const auto group = make_group(backend, world, device, watchdog, options.timeout_s);
  watch.reset();

  const std::int64_t outputs = loss.kind == LossKind::cross_entropy ? std::ssize(data->rows.classes)
                               : data                               ? data->rows.out
                                                                    : options.out;
  const LinearShape shape{data ? data->rows.in : options.in, outputs, options.bias};
  TorchGenerator generator(options.seed + static_cast<std::uint64_t>(data ? 0 : world.rank()));
  Model model = agree(world, [&] { return Model(device, shape, loss); });
  agree(world, [&] { initialise(model, options, data, world.rank(), generator); });
  DistributedDataParallel replica(world, device, *group, model);
  const auto optimizer = agree(world, [&] { return make_optimizer(device, model, options); });
  const auto source = agree(
      world, [&] { return make_source(world, device, options, data, shape, loss.class_weight, generator, plan); });
  console.line("model",
               fmt::format("Linear({} -> {}), {} parameters", shape.in, shape.out, model.layout().parameters()));
  console.line("data", describe_data(options, data, plan, world.size()));

  TrainerOptions trainer_options = make_trainer_options(options, plan, !data);
  const bool evaluates = options.evaluate_train || source->one_step_over_all_rows();
  if (evaluates) trainer_options.evaluate = [&] { return evaluate_loss(device, *group, model, data->rows); };
  console.expect(data ? plan.total_epochs() : 0, data ? 0 : plan.total_steps());
  console.start_event(start_event(world, options, device, backend, model, *source, plan, trainer_options, evaluates));
  TrainingResult result;
  double seconds = 0, penalty = 0;
  std::uint64_t hash = 0;
  {
    // It ends after the last collective of MPI: were its release to hang, NCCL's shut-down would tell.
    Trainer trainer(device, replica, *optimizer, *source, console);
    seconds = timed([&] { result = trainer.run(trainer_options); });
    const Watchdog::Watch ending(watchdog, "comparison of the replicas, and saving", 0);
    agree(world, [&] { require_finite(model); });
    hash = replica.require_equal_replicas();
    penalty = optimizer->penalty();
    agree(world, [&] {
      if (world.rank() == 0 && !options.save.empty()) save(options, model, data, console);
    });
  }
  watch = std::make_unique<Watchdog::Watch>(watchdog, "release of the group", 0);
  group->close();
  // A rank that failed there aborts while its peers are here, and not leaving MPI: mpirun was seen to crash then.
  agree(world, [] {});
  watch.reset();
  report_result(console, result, penalty, seconds, hash);
  watch = std::make_unique<Watchdog::Watch>(watchdog, "release of the devices", 0);
}

}  // namespace

void train(const World& world, const TrainOptions& options, Watchdog& watchdog) {
  Console console(options.quiet || world.rank() != 0, open_metrics(world, options));
  try {
    run(world, options, watchdog, console);
  } catch (const std::exception& error) {
    console.failed(error.what());
    throw;
  }
}

}  // namespace ddp::app
