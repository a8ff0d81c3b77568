#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/nearest.hpp>
#include <linear_ddp/base/version.hpp>

namespace ddp::app {
namespace {

/// Of the documented command line, not in this version. Refused by name, so that nobody waits for what will not happen.
constexpr std::array not_yet_options{"--exclude",
                                     "--x",
                                     "--y",
                                     "--labels",
                                     "--format",
                                     "--missing",
                                     "--zero-based",
                                     "--valid",
                                     "--task",
                                     "--hidden",
                                     "--activation",
                                     "--betas",
                                     "--eps",
                                     "--amsgrad",
                                     "--clip-grad-norm",
                                     "--schedule",
                                     "--tolerance",
                                     "--l2",
                                     "--C",
                                     "--alpha",
                                     "--l2-path",
                                     "--folds",
                                     "--sweep",
                                     "--weights",
                                     "--class-weights",
                                     "--label-smoothing",
                                     "--patience",
                                     "--save-best",
                                     "--accumulate",
                                     "--bucket-cap-mb",
                                     "--first-bucket-mb",
                                     "--compress",
                                     "--zero",
                                     "--deterministic",
                                     "--threads",
                                     "--checkpoint",
                                     "--checkpoint-every",
                                     "--keep",
                                     "--resume",
                                     "--tensorboard",
                                     "--report",
                                     "--trace",
                                     "--progress",
                                     "-v",
                                     "--config"};
constexpr std::array not_yet_commands{"predict", "evaluate", "bench"};

constexpr const char* help_footer = R"(
Examples
  mpirun -np 2 linear_ddp
      the smallest run: Linear(10 -> 10), one SGD step on random data, on two ranks
  mpirun -np 4 linear_ddp --data diabetes.csv --target target --standardize --global-batch full
      --epochs 5000 --lr 0.1 --momentum 0.9 --evaluate-train --save diabetes.safetensors
      a regression on a table, the same result for any number of ranks

Other commands
  linear_ddp info        ranks, hosts, devices, libraries, and what a training would use

Exit status: 0 done, 1 failed while running, 2 wrong use or wrong data, 124 a collective passed --timeout.)";

std::int64_t parse_global_batch(const std::string& text) {
  if (text == "full") return 0;
  std::int64_t rows = 0;
  if (!CLI::detail::lexical_cast(text, rows) || rows < 1) {
    throw UseError(fmt::format("--global-batch: '{}' is neither a number of rows above 0 nor full", text));
  }
  return rows;
}

char parse_character(const std::string& option, const std::string& text) {
  if (text == "\\t" || text == "tab") return '\t';
  if (text.size() != 1) throw UseError(fmt::format("{}: '{}' is not one character (tab: \\t)", option, text));
  return text[0];
}

std::vector<std::string> split_names(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

/// Texts of options that become values of other types once all is parsed.
struct Texts {
  std::string target, features, global_batch, delimiter, decimal;
  std::string header = "auto", device = "auto", average = "rows";
  std::string loss = "mse", optimizer = "sgd", precision = "fp32";
};

void add_options(CLI::App& app, TrainOptions& options, Texts& texts) {
  const auto& positive = CLI::PositiveNumber;
  const auto flag = [&app](const char* name, auto& value, const char* help) {
    app.add_flag(name, value, help)->group("Data and model");
  };

  const std::string data_group = "Data and model";
  app.add_option("--in", options.in, "inputs of the layer, for synthetic data [10]")
      ->check(positive)
      ->group(data_group);
  app.add_option("--out", options.out, "outputs of the layer, for synthetic data [10]")
      ->check(positive)
      ->group(data_group);
  app.add_option("--data", options.data, "table to train on: .csv, .tsv, .npy [synthetic data]")->group(data_group);
  app.add_option("--target", texts.target, "target columns, by name or #K (#0 is the first) [the last column]")
      ->group(data_group);
  app.add_option("--features", texts.features, "feature columns [all that are not targets]")->group(data_group);
  app.add_option("--header", texts.header, "whether a text table begins with names: auto, yes, no [auto]")
      ->group(data_group);
  app.add_option("--delimiter", texts.delimiter, "between the fields of a text table [, or tab for .tsv]")
      ->group(data_group);
  app.add_option("--decimal", texts.decimal, "decimal point of a text table [.]")->group(data_group);
  flag("--standardize", options.standardize, "scale each feature to mean 0 and deviation 1; folded back on saving");
  app.add_flag("!--no-bias", options.bias, "a layer without bias")->group(data_group);
  app.add_option("--init", options.init,
                 "first parameters: torch (nn.Linear's for --seed), zeros, or a safetensors file [torch]")
      ->group(data_group);
  app.add_option("--loss", texts.loss, "mse [mse]")->group(data_group);

  const std::string training = "Training";
  app.add_option("--optimizer", texts.optimizer, "sgd [sgd]")->group(training);
  app.add_option("--lr", options.sgd.lr, "learning rate [0.001]")->group(training);
  app.add_option("--momentum", options.sgd.momentum, "as in torch.optim.SGD [0]")->group(training);
  app.add_option("--dampening", options.sgd.dampening, "as in torch.optim.SGD [0]")->group(training);
  app.add_flag("--nesterov", options.sgd.nesterov, "as in torch.optim.SGD")->group(training);
  app.add_option("--weight-decay", options.sgd.weight_decay, "as in torch.optim.SGD [0]")->group(training);
  app.add_option("--batch-size", options.batch_size, "rows for each rank at each step [20 for synthetic data]")
      ->check(positive)
      ->group(training);
  app.add_option("--global-batch", texts.global_batch, "rows over all ranks at each step, or full [256 with data]")
      ->group(training);
  app.add_option("--epochs", options.epochs, "passes over the data [1]")->check(positive)->group(training);
  app.add_option("--steps", options.steps, "optimizer steps to stop after")->check(positive)->group(training);
  app.add_option("--seed", options.seed, "of the first parameters and of the order of the rows [0]")->group(training);
  app.add_flag("!--no-shuffle", options.shuffle, "take the rows in the order of the file")->group(training);
  app.add_flag("--drop-last", options.drop_last, "leave out an epoch's last step when it is short")->group(training);
  app.add_option("--average", texts.average,
                 "mean over all rows of a step, or PyTorch's of the ranks' means: rows, ranks [rows]")
      ->group(training);

  const std::string where = "Devices";
  app.add_option("--device", texts.device, "auto, cuda, cpu; auto: CUDA when every rank has a GPU of its own [auto]")
      ->group(where);
  app.add_option("--backend", options.backend, "auto, nccl, mpi; auto: NCCL on GPUs, MPI on CPUs [auto]")->group(where);
  app.add_option("--precision", texts.precision, "fp32 [fp32]")->group(where);
  app.add_option("--timeout", options.timeout_s, "seconds after which a collective has failed [120]")
      ->check(positive)
      ->group(where);

  const std::string output = "Output";
  app.add_option("--save", options.save, "write the model here, with PyTorch's names (safetensors)")->group(output);
  app.add_option("--metrics", options.metrics, "write a JSON object a line for start, steps, epochs, end")
      ->group(output);
  app.add_option("--log-every", options.log_every, "steps between step lines of --metrics [1 with --steps <= 1000]")
      ->check(positive)
      ->group(output);
  app.add_flag("--evaluate-train", options.evaluate_train,
               "the loss over all training rows, after each epoch and at the end")
      ->group(output);
  app.add_flag("--quiet", options.quiet, "print errors and warnings only")->group(output);
}

[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  if (std::find(not_yet_options.begin(), not_yet_options.end(), name) != not_yet_options.end()) {
    throw UseError(
        fmt::format("{} is not there yet in linear_ddp {}; `linear_ddp --help` lists what is", name, version()));
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name(false, false));
  const std::string near = nearest(name, known);
  throw UseError(fmt::format("unknown {} '{}'{}; `linear_ddp --help` lists the options",
                             name.starts_with('-') ? "option" : "argument", argument,
                             near.empty() ? "" : fmt::format(", did you mean {}?", near)));
}

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

template <class T>
T choose(const std::string& option, const std::string& value, const Choices<T>& choices,
         const std::vector<std::string>& not_yet = {}) {
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices) {
    if (name == value) return choice;
    names.push_back(name);
  }
  const bool known = std::find(not_yet.begin(), not_yet.end(), value) != not_yet.end();
  throw UseError(fmt::format("{} {} is {}; accepted: {}", option, value,
                             known ? fmt::format("not there yet in linear_ddp {}", version()) : "unknown",
                             fmt::join(names, ", ")));
}

void finish(TrainOptions& options, const Texts& texts) {
  choose<int>("--loss", texts.loss, {{"mse", 0}}, {"huber", "bce", "cross-entropy"});
  choose<int>("--optimizer", texts.optimizer, {{"sgd", 0}}, {"adam", "adamw", "lbfgs", "exact"});
  choose<int>("--precision", texts.precision, {{"fp32", 0}}, {"tf32", "bf16", "fp64"});
  choose<int>("--backend", options.backend, {{"auto", 0}, {"nccl", 0}, {"mpi", 0}});
  options.device = choose<DeviceRequest>(
      "--device", texts.device,
      {{"auto", DeviceRequest::automatic}, {"cuda", DeviceRequest::cuda}, {"cpu", DeviceRequest::cpu}});
  options.averaging =
      choose<Averaging>("--average", texts.average, {{"rows", Averaging::rows}, {"ranks", Averaging::ranks}});
  options.text.header =
      choose<Header>("--header", texts.header, {{"auto", Header::automatic}, {"yes", Header::yes}, {"no", Header::no}});
  if (!texts.target.empty()) options.columns.targets = split_names(texts.target);
  if (!texts.features.empty()) options.columns.features = split_names(texts.features);
  if (!texts.delimiter.empty()) options.text.delimiter = parse_character("--delimiter", texts.delimiter);
  if (!texts.decimal.empty()) options.text.decimal = parse_character("--decimal", texts.decimal);
  if (options.text.delimiter == options.text.decimal) {
    throw UseError("--delimiter and --decimal are the same character");
  }
  if (!texts.global_batch.empty()) options.global_batch = parse_global_batch(texts.global_batch);
  if (options.standardize && !options.bias) {
    throw UseError("--standardize needs a bias to fold the features' means into; leave out --no-bias");
  }
  if (options.batch_size && options.global_batch) {
    throw UseError("--batch-size (rows for each rank) and --global-batch (rows over all ranks) exclude each other");
  }
  if (!options.data.empty()) return;
  const std::array<std::pair<const char*, bool>, 8> need_data{{{"--target", !texts.target.empty()},
                                                               {"--features", !texts.features.empty()},
                                                               {"--standardize", options.standardize},
                                                               {"--global-batch full", options.global_batch == 0},
                                                               {"--evaluate-train", options.evaluate_train},
                                                               {"--delimiter", !texts.delimiter.empty()},
                                                               {"--no-shuffle", !options.shuffle},
                                                               {"--drop-last", options.drop_last}}};
  for (const auto& [name, given] : need_data) {
    if (given) throw UseError(fmt::format("{} needs --data FILE: there is no table to apply it to", name));
  }
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty()) {
    const std::string& first = arguments.front();
    if (std::find(not_yet_commands.begin(), not_yet_commands.end(), first) != not_yet_commands.end()) {
      throw UseError(
          fmt::format("the command {} is not there yet in linear_ddp {}; there are train and info", first, version()));
    }
    if (first == "info") line.command = Command::info;
    if (first == "train" || first == "info") arguments.erase(arguments.begin());
  }

  const bool is_train = line.command == Command::train;
  CLI::App app{is_train ? "Distributed data-parallel training of linear models."
                        : "What this job sees: ranks, hosts, devices, libraries.",
               is_train ? "mpirun -np N linear_ddp [train]" : "mpirun -np N linear_ddp info"};
  Texts texts;
  if (is_train) {
    app.footer(help_footer);
    add_options(app, line.train, texts);
  }
  bool wants_version = false;
  app.add_flag("--version", wants_version, "the version of linear_ddp");
  app.allow_extras();
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    line.text = TextRequest{app.help()};
    return line;
  } catch (const CLI::ParseError& error) {
    throw UseError(fmt::format("{}; see `linear_ddp --help`", error.what()));
  }
  if (wants_version) {
    line.text = TextRequest{fmt::format("linear_ddp {}\n", version())};
    return line;
  }
  if (const auto extras = app.remaining(); !extras.empty()) refuse_unknown(app, extras.front());
  finish(line.train, texts);
  return line;
}

}  // namespace ddp::app
