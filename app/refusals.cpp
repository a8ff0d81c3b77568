#include "refusals.hpp"

#include <CLI/CLI.hpp>

#include <linear_ddp/base/error.hpp>
#include "option_values.hpp"

namespace ddp::app {
namespace {

/// There are no steps, and the host's sums are in float64.
void refuse_for_exact(const CLI::App& app, const TrainOptions& options) {
  if (options.optimizer != "exact") {
    refuse_given(app, "--summary", "needs --optimizer exact");
    if (options.precision != "fp32" && options.optimizer != "lbfgs") {
      throw UseError("--precision " + options.precision + " needs --optimizer exact or lbfgs");
    }
    return;
  }
  if (options.data.empty()) throw UseError("--optimizer exact needs --data FILE: a table to fit");
  if (options.loss() != "mse") {
    throw UseError("--optimizer exact solves least squares, --loss mse; for " + options.loss() + " use sgd or adam");
  }
  refuse_given(
      app,
      "--lr --schedule --momentum --dampening --nesterov --betas --eps --amsgrad --weight-decay "
      "--sweep --clip-grad-norm --accumulate --batch-size --global-batch --epochs --steps --tolerance --patience "
      "--save-best --drop-last --average --init --log-every --compress --bucket-cap-mb --first-bucket-mb "
      "--deterministic --zero",
      "is for steps, and --optimizer exact makes none");
  refuse_given(app, "--device --backend", "is not for --optimizer exact, which works on the host");
  if (options.gradient.l2 > 0 || options.alpha) {
    refuse_given(app, "--summary", "has standard errors, which a penalty leaves without meaning");
  }
}

/// All rows at each step, whose length it finds by itself.
void refuse_for_lbfgs(const CLI::App& app, const TrainOptions& options) {
  if (options.optimizer != "lbfgs") return;
  if (options.data.empty()) throw UseError("--optimizer lbfgs needs --data FILE: a table to fit");
  if (options.global_batch && *options.global_batch != 0) {
    throw UseError("--optimizer lbfgs takes all rows at each step: leave out --global-batch, or say full");
  }
  refuse_given(
      app,
      "--lr --schedule --momentum --dampening --nesterov --betas --eps --amsgrad --weight-decay "
      "--sweep --clip-grad-norm --accumulate --batch-size --steps --drop-last --average --log-every --compress "
      "--bucket-cap-mb --first-bucket-mb --deterministic --zero",
      "is not for --optimizer lbfgs, which takes all rows at each step and finds its length by itself");
  if (!options.lbfgs_in_float64()) return;
  if (options.device == DeviceRequest::cuda) {
    throw UseError("--device cuda is not for --precision fp64, which works on the host");
  }
  refuse_given(app, "--l2-path", "with --optimizer lbfgs is of --precision fp32, whose penalties share their products");
  refuse_given(app, "--save-best", "keeps float parameters, and --precision fp64 has others");
}

void refuse_path(const CLI::App& app, const TrainOptions& options) {
  const auto refuse_given = [&app](const char* names, const std::string& why) { app::refuse_given(app, names, why); };
  const bool optimum = options.optimizer == "exact" || options.optimizer == "lbfgs";
  if (optimum && !options.folds) {
    refuse_given("--no-shuffle", "is of steps or --folds; the optimum of all rows is the same in any order");
  }
  if (options.l2_path.empty()) {
    refuse_given("--folds --one-standard-error", "needs --l2-path: it is to choose a penalty");
    return;
  }
  if (!optimum) {
    throw UseError("--l2-path needs --optimizer exact or lbfgs, which find the optimum of each penalty");
  }
  refuse_given("--l2 --C --alpha", "is one penalty, and --l2-path chooses among several; give one of them");
  refuse_given("--patience --save-best", "chooses among epochs, and --l2-path among optima");
  refuse_given("--summary", "has standard errors, which a penalty leaves without meaning");
  if (options.folds && *options.folds < 2) throw UseError("--folds must be 2 or more");
  if (options.folds) refuse_given("--valid", "and --folds exclude each other: the folds are what is held out");
  if (!options.folds && options.valid.empty()) {
    throw UseError("--l2-path needs rows to choose by: --folds K, or --valid FILE|FRACTION");
  }
  if (!options.folds) refuse_given("--one-standard-error", "needs --folds, from which the error is known");
}

void refuse_sweep(const CLI::App& app, const TrainOptions& options) {
  if (options.sweep.empty()) return;
  for (const auto& [name, values] : options.sweep) {
    refuse_given(app, ("--" + name).c_str(), "is one value, and --sweep has values of it; give one of them");
    if (name == "l2") refuse_given(app, "--C --alpha", "is --l2 in other words, and --sweep has values of it");
  }
  if (options.compression.kind == Compression::Kind::powersgd) {
    throw UseError("--compress powersgd takes all heads of --sweep for one layer; use fp16 or bf16");
  }
  refuse_given(app, "--tolerance", "ends one training, and --sweep makes several at once; see --patience");
}

void refuse_deterministic(const CLI::App& app, const TrainOptions& options) {
  if (!options.deterministic) return;
  refuse_given(app, "--compress --bucket-cap-mb --first-bucket-mb",
               "is not for --deterministic, which sums gradients in an order of its own");
  if (options.averaging == Averaging::ranks) {
    throw UseError("--average ranks depends on the number of ranks, and --deterministic must not");
  }
}

void refuse_zero(const CLI::App& app, const TrainOptions& options) {
  if (!options.zero) return;
  refuse_given(app, "--compress --bucket-cap-mb --first-bucket-mb --deterministic",
               "is not for --zero, which reduces all gradients as one, in shards");
  refuse_given(app, "--sweep", "has an optimizer for each head, and --zero shards one");
}

void refuse_hidden(const CLI::App& app, const TrainOptions& options) {
  if (options.hidden.empty()) {
    refuse_given(app, "--activation", "needs --hidden: it is between layers");
    return;
  }
  if (options.optimizer == "exact" || options.optimizer == "lbfgs") {
    throw UseError("--hidden is for sgd, adam and adamw: --optimizer " + options.optimizer +
                   " has the optimum of one layer");
  }
  refuse_given(app, "--sweep", "trains single layers side by side, and --hidden makes several of one");
}

void refuse_checkpoints(const CLI::App& app, const TrainOptions& options) {
  if (options.checkpoint.folder.empty()) {
    refuse_given(app, "--checkpoint-every --keep --resume", "needs --checkpoint DIR: the folder of the checkpoints");
  } else if (options.optimizer == "exact" || options.optimizer == "lbfgs") {
    throw UseError("--checkpoint is for sgd, adam and adamw, and not for --optimizer " + options.optimizer);
  } else if (options.zero || options.compression.kind == Compression::Kind::powersgd) {
    refuse_given(app, "--zero --compress", "and --checkpoint exclude each other: each rank has a state of its own");
  }
}

void refuse_penalties(const CLI::App& app, const TrainOptions& options) {
  const auto refuse_given = [&app](const char* names, const std::string& why) { app::refuse_given(app, names, why); };
  if (options.c || options.alpha) refuse_given("--l2", "is --C or --alpha in other words; give one of them");
  if (options.loss() != "mse") refuse_given("--alpha", "is of least squares, --loss mse; use --l2, or --C for classes");
  if (options.task() == Task::regression)
    refuse_given("--C", "is of classes: --task binary or multiclass; use --alpha");
}

}  // namespace

void refuse_given(const CLI::App& app, const char* names, const std::string& why) {
  for (const auto& name : split_names(names, ' ')) {
    if (app.get_option_no_throw(name) != nullptr && app.count(name) > 0) throw UseError(name + " " + why);
  }
}

void refuse_for_optimum(const CLI::App& app, const TrainOptions& options) {
  refuse_for_exact(app, options);
  refuse_for_lbfgs(app, options);
  refuse_penalties(app, options);
  refuse_path(app, options);
  refuse_sweep(app, options);
  refuse_hidden(app, options);
  refuse_deterministic(app, options);
  refuse_zero(app, options);
  refuse_checkpoints(app, options);
}

}  // namespace ddp::app
