#include "checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <set>

#include <linear_ddp/base/atomic_file.hpp>
#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/hash.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp::app {
namespace {

constexpr const char* identity_name = "training";

/// Numbers that are none are no state to go on from: the training is about to fail.
bool has_diverged(Model& model) {
  if (model.shape().heads > 1) return false;  // one may, and disturbs no other
  for (std::size_t slot = 0; slot < model.layout().slots().size(); ++slot) {
    const auto values = model.download(slot);
    if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) return true;
  }
  return false;
}

}  // namespace

void require_checkpoint_folder(const CheckpointOptions& options) {
  if (options.folder.empty()) return;
  if (!options.resume && !checkpoint_files(options.folder).empty()) {
    throw UseError(
        fmt::format("--checkpoint {} holds checkpoints of an earlier training: give --resume to go on from "
                    "the newest, or another folder",
                    options.folder));
  }
  require_writable(checkpoint_path(options.folder, 0));
}

nlohmann::ordered_json identity_of(const TrainOptions& options, const Plan& plan,
                                   const std::optional<TrainingData>& data) {
  static const std::set<std::string> may_change{"data",
                                                "labels",
                                                "valid",
                                                "stream",
                                                "init",
                                                "lr",
                                                "schedule",
                                                "epochs",
                                                "steps",
                                                "batch-size",
                                                "global-batch",
                                                "bucket-cap-mb",
                                                "first-bucket-mb",
                                                "timeout",
                                                "save",
                                                "metrics",
                                                "log-every",
                                                "evaluate-train",
                                                "quiet",
                                                "checkpoint",
                                                "checkpoint-every",
                                                "keep",
                                                "resume"};
  nlohmann::ordered_json identity;
  const auto all = options.to_json();
  for (const auto& [name, value] : all.items()) {
    if (!may_change.contains(name)) identity["--" + name] = value;
  }
  identity["--global-batch (rows of all ranks at a step)"] = plan.global_batch;
  if (!data) return identity;
  const auto hash_of = [](const SharedArray& values) {
    Hash hash;
    hash.add(std::as_bytes(std::span(values.data(), values.size())));
    return fmt::format("with hash {:016x}", hash.value());
  };
  identity["the number of rows to train on"] = data->rows.rows;
  identity["the number of features"] = data->rows.in;
  identity["the targets of --data"] = hash_of(data->rows.y);
  if (data->valid) identity["the targets of --valid"] = hash_of(data->valid->y);
  return identity;
}

Checkpoints::Checkpoints(const World& world, const CheckpointOptions& options, Console& console,
                         DistributedDataParallel& replica, nlohmann::ordered_json identity,
                         std::function<void(Checkpoint&)> exchange)
    : world_(world),
      options_(options),
      console_(console),
      replica_(replica),
      identity_(std::move(identity)),
      exchange_(std::move(exchange)),
      signals_(!options.folder.empty()) {}

void Checkpoints::require_same_training(const Checkpoint& state, std::int64_t total_steps) {
  const std::string& path = state.file().path;
  const auto stored = nlohmann::ordered_json::parse(state.text(identity_name), nullptr, false);
  if (!stored.is_object()) throw UseError(path + ": it does not tell which training it is of");
  const auto of = [](const nlohmann::ordered_json& json, const std::string& name) {
    return json.contains(name) ? json.at(name).dump() : "null";
  };
  auto names = stored;
  names.update(identity_);
  for (const auto& [name, ignored] : names.items()) {
    if (of(stored, name) == of(identity_, name)) continue;
    throw UseError(
        fmt::format("{} cannot go on here: {} was {} then and is {} now; give it as it was, or another "
                    "--checkpoint folder",
                    path, name, of(stored, name), of(identity_, name)));
  }
  Checkpoint copy = state;
  std::int64_t steps = 0;
  copy.exchange("steps", steps);
  if (steps > total_steps) {
    throw UseError(fmt::format("{} is of step {}, beyond the {} of --epochs and --steps; give more of them", path,
                               steps, total_steps));
  }
}

std::string Checkpoints::newest(std::int64_t total_steps) {
  const auto files = checkpoint_files(options_.folder);
  std::string why;
  for (const CheckpointFile& file : files) {
    std::optional<Checkpoint> state;
    try {
      state = read_checkpoint(file.path);
    } catch (const UseError& error) {
      if (why.empty()) why = error.what();
      fmt::print(stderr, "linear_ddp: warning: not complete, so an older one is looked for: {}\n", error.what());
      continue;
    }
    require_same_training(*state, total_steps);
    return file.path;
  }
  if (files.empty()) return {};
  throw UseError(
      fmt::format("--checkpoint {} has no complete checkpoint: {}; remove what is there to start from the "
                  "beginning",
                  options_.folder, why));
}

void Checkpoints::resume(std::int64_t total_steps) {
  if (!options_.resume) return;
  const auto of_rank_0 = agree(world_, [&] { return writes() ? newest(total_steps) : std::string{}; });
  const std::string path = broadcast(world_, of_rank_0, 0);
  if (path.empty()) {
    console_.line("resumed", fmt::format("nothing: no checkpoint in {} yet, so from the beginning", options_.folder));
    return;
  }
  const auto step = agree(world_, [&] {
    Checkpoint state = read_checkpoint(path);
    exchange_(state);
    std::int64_t steps = 0;
    state.exchange("steps", steps);
    return steps;
  });
  saved_step_ = step;
  saved_ = path;
  console_.line("resumed", fmt::format("from {}, of step {}", path, step));
  console_.event({{"event", "resume"}, {"step", step}, {"file", path}});
}

bool Checkpoints::between_steps(std::int64_t step, bool last) {
  if (last && !options_.folder.empty()) hash_ = replica_.require_equal_replicas();
  try {
    if (writes() && !failure_ && (last || is_due(step)) && step != saved_step_) save(step);
  } catch (...) {
    failure_ = std::current_exception();  // for all ranks, at the end of the training that it brings about
  }
  return failure_ || signals_.received() != 0;
}

bool Checkpoints::is_due(std::int64_t step) {
  const bool is_written = writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  if (is_written) finish_writing();
  if (options_.every_steps) return step % *options_.every_steps == 0;
  return options_.every_s && !writing_.valid() && Clock::now() - last_save_ >= std::chrono::seconds(*options_.every_s);
}

void Checkpoints::save(std::int64_t step) {
  finish_writing();
  last_save_ = Clock::now();
  if (has_diverged(replica_.model())) return;
  Checkpoint state;
  exchange_(state);
  state.set_text(identity_name, identity_.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  state.set_text("linear_ddp", std::string(version()));
  saved_step_ = step;
  writing_ =
      std::async(std::launch::async, [folder = options_.folder, keep = options_.keep, step, state = std::move(state)] {
        write_checkpoint(folder, step, state, keep);
      });
}

void Checkpoints::finish_writing() {
  if (!writing_.valid()) return;
  writing_.get();
  saved_ = checkpoint_path(options_.folder, saved_step_);
  console_.event({{"event", "checkpoint"}, {"step", saved_step_}, {"file", saved_}});
}

void Checkpoints::finish() {
  agree(world_, [&] {
    if (failure_) std::rethrow_exception(failure_);
    finish_writing();
  });
  if (!saved_.empty()) console_.line("checkpoint", saved_);
}

Status Checkpoints::report_stop(const TrainingResult& result, double seconds) {
  const auto signals = all_gather(world_, signals_.received());
  const auto one = *std::find_if(signals.begin(), signals.end(), [](std::int64_t signal) { return signal != 0; });
  const std::string how = fmt::format("by {} after step {}", name_of_signal(static_cast<int>(one)), result.steps);
  console_.line("stopped", how + (saved_.empty() ? "" : ": run again with --resume to go on"));
  nlohmann::ordered_json event{{"event", "end"},
                               {"status", "signal"},
                               {"steps", result.steps},
                               {"epochs", result.epochs},
                               {"seconds", seconds},
                               {"rows_per_s", static_cast<double>(result.rows) / seconds},
                               {"parameters_hash", nullptr},
                               {"message", "stopped " + how}};
  if (!options_.folder.empty()) event["parameters_hash"] = fmt::format("{:016x}", hash_);
  console_.event(event);
  return one == SIGINT ? Status::cancelled : Status::interrupted;
}

}  // namespace ddp::app
