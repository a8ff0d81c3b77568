#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include <linear_ddp/base/atomic_file.hpp>
#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/preflight.hpp>
#include <linear_ddp/training/evaluation.hpp>
#include <linear_ddp/training/trainer.hpp>
#include "checkpoints.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "model_file.hpp"
#include "objective.hpp"
#include "outcome.hpp"
#include "plan.hpp"
#include "runtime.hpp"
#include "scores.hpp"
#include "solve.hpp"
#include "sweep.hpp"
#include "training_data.hpp"
#include "validation.hpp"

namespace ddp::app {
namespace {

Facts facts_of(const TrainOptions& options, const std::optional<TrainingData>& data, const Device& device) {
  Facts facts = run_facts(device, options);
  if (data) facts.emplace_back("rows", std::to_string(data->rows.rows));
  if (data && data->valid) facts.emplace_back("validation rows", std::to_string(data->valid->rows));
  return facts;
}

bool is_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

void require_finite(const Model& model) {
  for (std::size_t slot = 0; slot < model.layout().slots().size(); ++slot) {
    if (is_finite(model.download(slot))) continue;
    throw Error(Status::failed, fmt::format("the trained {} is not finite: training diverged at its last step; use "
                                            "a smaller --lr, and --standardize when features differ in scale",
                                            model.layout().slots()[slot].name));
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
      "{}: {} rows, {} feature{} -> {}{}{}", options.data, data->rows.rows, data->rows.in,
      data->rows.in == 1 ? "" : "s",
      names.size() <= 4 ? fmt::format("{}", fmt::join(names, ", ")) : fmt::format("{} targets", names.size()),
      data->rows.classes.empty() ? "" : fmt::format(", {} classes", data->rows.classes.size()),
      data->valid ? fmt::format("; {} to validate on", data->valid->rows) : "");
}

nlohmann::ordered_json start_event(const World& world, const TrainOptions& options, const Device& device,
                                   const std::string& backend, const Model& model, std::int64_t rows, const Plan& plan,
                                   const TrainerOptions& trainer, bool evaluates) {
  nlohmann::ordered_json event{{"event", "start"},
                               {"version", version()},
                               {"world_size", world.size()},
                               {"device", device.kind()},
                               {"backend", backend},
                               {"parameters", model.layout().parameters()},
                               {"rows", rows},
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

/// `found` in float64, where there is such, or the model.
void save(const TrainOptions& options, const Model& model, const std::optional<LinearValues>& found,
          const std::optional<TrainingData>& data, Console& console) {
  Provenance provenance{.task = options.task(), .loss = options.loss()};
  if (data) {
    provenance.feature_names = data->share.feature_names;
    provenance.target_names = data->share.target_names;
    provenance.classes = data->rows.classes;
    provenance.standardizer = data->standardizer ? &*data->standardizer : nullptr;
  }
  found ? save_model(options.save, *found, model.shape().in, true, provenance)
        : save_model(options.save, model, provenance);
  console.line("saved", options.save);
}

/// Seconds that `work` takes.
template <class Work>
double timed(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Status run(const World& world, const TrainOptions& options, Watchdog& watchdog, Console& console) {
  agree(world, [&] {
    if (world.rank() == 0 && !options.save.empty()) require_writable(options.save);
    if (world.rank() == 0) require_checkpoint_folder(options.checkpoint);
  });
  // A driver may hang before there is a group, and when what was made is released. (Reading data takes what it takes.)
  auto watch = std::make_unique<Watchdog::Watch>(watchdog, "start of the devices", 0);
  const SelectedDevice selected =
      select_device(world, options.lbfgs_in_float64() ? DeviceRequest::cpu : options.device);
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
  const LinearShape shape{.in = data ? data->rows.in : options.in,
                          .out = outputs,
                          .bias = options.bias,
                          .hidden = options.hidden,
                          .activation = options.activation};
  TorchGenerator generator(options.seed + static_cast<std::uint64_t>(data ? 0 : world.rank()));
  Model model = agree(world, [&] { return Model(device, shape, loss, options.zero ? world.size() : 1); });
  agree(world, [&] { initialise(model, options, data ? data->standardizer : std::nullopt, world.rank(), generator); });
  const std::vector<TrainOptions> heads = heads_of(options);
  std::optional<Model> wide;
  agree(world, [&] {
    if (heads.size() > 1) wide.emplace(repeated(device, model, heads.size()));
  });
  Model& trained = wide ? *wide : model;
  DistributedDataParallel replica(world, device, *group, trained, options.buckets);
  if (options.deterministic) agree(world, [&] { replica.make_deterministic(); });
  std::optional<OptimizerShard> shard;
  if (options.zero) shard = agree(world, [&] { return replica.shard_optimizer(); });
  replica.register_comm_hook(agree(world, [&] { return make_hook(options.compression, device, trained); }));
  std::optional<TableObjective> in_float64;
  if (options.lbfgs_in_float64()) {
    in_float64.emplace(world, data->share, make_table_loss(options, data->rows), options.bias);
  }
  const double weight = in_float64 ? in_float64->weight() : data ? total_weight(data->rows, loss) : 0;
  const double l2 = l2_of(options, weight, outputs);
  const bool by_lbfgs = options.optimizer == "lbfgs";
  const auto optimizers = agree(world, [&] {
    std::vector<std::unique_ptr<Optimizer>> of_heads;
    for (const TrainOptions& head : heads) {
      if (by_lbfgs) break;
      of_heads.push_back(
          make_optimizer(device, trained, head, l2_of(head, weight, outputs), std::ssize(of_heads), shard));
    }
    return of_heads;
  });
  const auto source = agree(world, [&] {
    return by_lbfgs ? std::unique_ptr<BatchSource>()
                    : make_source(world, device, options, data, shape, loss.class_weight, generator, plan);
  });
  console.line("model", fmt::format("{}, {} parameters", shape.description(), model.layout().parameters()));
  console.line("data", describe_data(options, data, plan, world.size()));
  if (world.rank() == 0) warn_of(options.compression, plan.total_steps());

  TrainerOptions trainer_options = make_trainer_options(options, plan, !data);
  const bool evaluates = options.evaluate_train || by_lbfgs || source->one_step_over_all_rows();
  if (evaluates) trainer_options.evaluate = [&] { return evaluate_losses(device, *group, trained, data->rows); };
  console.expect(data ? plan.total_epochs() : 0, data ? 0 : plan.total_steps(), std::ssize(heads));
  console.name_score(score_name(options.task()));
  auto start = start_event(world, options, device, backend, model,
                           by_lbfgs ? data->rows.rows : source->rows_per_epoch(), plan, trainer_options, evaluates);
  start["l2"] = l2;
  if (data && data->valid) start["valid_rows"] = data->valid->rows;
  console.start_event(start);
  const auto scores_of = [&](const Dataset& rows) {
    const Watchdog::Watch evaluation(watchdog, "evaluation", 0);
    return evaluate(world, device, model, rows);
  };
  EarlyStopping stopping(trained, options, [&] {
    const Watchdog::Watch evaluation(watchdog, "evaluation", 0);
    return evaluate_heads(world, device, trained, *data->valid, false);
  });
  if (data && data->valid) trainer_options.validate = std::ref(stopping);
  // A rank that failed there aborts while its peers are here, and not leaving MPI: mpirun was seen to crash then.
  const auto close_group = [&] {
    watch = std::make_unique<Watchdog::Watch>(watchdog, "release of the group", 0);
    group->close();
    agree(world, [] {});
    watch.reset();
  };
  Outcome outcome;
  {
    // It ends after the last collective of MPI: were its release to hang, NCCL's shut-down would tell.
    std::optional<Trainer> trainer;
    if (by_lbfgs) {
      std::function<Validation(std::int64_t)> validate;
      if (data->valid) validate = [&](std::int64_t iteration) { return stopping(iteration).front(); };
      outcome.seconds = timed([&] {
        outcome.search = fit_by_lbfgs({world, device, *group, watchdog, model, *data, options, plan.epochs, weight, l2,
                                       validate, in_float64 ? &*in_float64 : nullptr},
                                      console);
      });
      const std::int64_t iterations = outcome.search->search.last.iteration;
      outcome.training = {iterations, iterations, outcome.search->rows_seen, {outcome.search->loss}};
    } else {
      std::vector<Optimizer*> of_heads;
      for (const auto& optimizer : optimizers) of_heads.push_back(optimizer.get());
      trainer.emplace(device, replica, of_heads, *source, console);
      Checkpoints checkpoints(world, options.checkpoint, console, replica, identity_of(options, plan, data),
                              [&](Checkpoint& state) {
                                trainer->exchange(state);
                                stopping.exchange(state);
                              });
      checkpoints.resume(plan.total_steps());
      trainer_options.between_steps = [&](std::int64_t step, bool last) {
        return checkpoints.between_steps(step, last);
      };
      outcome.seconds = timed([&] { outcome.training = trainer->run(trainer_options); });
      checkpoints.finish();
      if (outcome.training.interrupted) {
        trainer.reset();
        close_group();
        return checkpoints.report_stop(outcome.training, outcome.seconds);
      }
    }
    if (stopping.restore() && evaluates) outcome.training.train_losses = trainer_options.evaluate();
    if (!options.sweep.empty()) {
      std::vector<HeadResult> results;
      for (std::size_t head = 0; head < heads.size(); ++head) {
        results.push_back({outcome.training.train_losses[head], {}, stopping.best_epoch(head)});
        // A mean of the epoch's steps does not tell that the last one went astray.
        if (!is_finite(trained.download_head(static_cast<std::int64_t>(head)))) {
          results.back().train_loss = std::numeric_limits<double>::quiet_NaN();
        }
        if (data && data->valid) results.back().validation = stopping.validation(head);
      }
      outcome.head = report_sweep(options, heads, results, console);
    }
    if (wide) model.upload_head(0, wide->download_head(static_cast<std::int64_t>(outcome.head)));
    outcome.train_loss = outcome.training.train_losses[outcome.head];
    outcome.best_epoch = stopping.best_epoch(outcome.head);
    if (options.evaluate_train) outcome.train = scores_of(data->rows);
    if (data && data->valid) outcome.valid = scores_of(*data->valid);
    const Watchdog::Watch ending(watchdog, "comparison of the replicas, and saving", 0);
    agree(world, [&] { require_finite(model); });
    const auto found = by_lbfgs ? outcome.search->found : std::nullopt;
    outcome.hash = found ? agreed_hash_of(world, found->weight, found->bias) : replica.require_equal_replicas();
    outcome.penalty = by_lbfgs ? outcome.search->penalty : optimizers[outcome.head]->penalty();
    agree(world, [&] {
      if (world.rank() == 0 && !options.save.empty()) save(options, model, found, data, console);
    });
  }
  close_group();
  report_result(console, outcome, data ? data->share.target_names : std::vector<std::string>{});
  watch = std::make_unique<Watchdog::Watch>(watchdog, "release of the devices", 0);
  return Status::ok;
}

}  // namespace

Status train(const World& world, const TrainOptions& options, Watchdog& watchdog) {
  Console console(options.quiet || world.rank() != 0, open_metrics(world, options.metrics, options.checkpoint.resume));
  try {
    if (options.optimizer != "exact") return run(world, options, watchdog, console);
    solve(world, options, watchdog, console);
    return Status::ok;
  } catch (const std::exception& error) {
    console.failed(error.what());
    throw;
  }
}

}  // namespace ddp::app
