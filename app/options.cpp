#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>

#include <linear_ddp/base/nearest.hpp>
#include "format_options.hpp"
#include "option_texts.hpp"
#include "option_values.hpp"

namespace ddp::app {
namespace {

/// What an option does with its text.
using Take = std::function<void(const std::string& option, const std::string& text)>;

/// An empty text is refused for all of them: `--data "$UNSET"` must not mean the default.
void add(CLI::App& app, const char* name, const char* type, const char* help, Take take) {
  const auto parse = [name, take = std::move(take)](const std::string& text) {
    if (text.empty()) throw UseError(fmt::format("{}: its value is empty", name));
    take(name, text);
  };
  app.add_option_function<std::string>(name, parse, help)->type_name(type);
}

template <class Value>  // std::int64_t, or an optional one
Take whole(Value& value, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  return [&value, most](const auto& option, const auto& text) {
    value = parse_whole<std::int64_t>(option, text, 1, most);
  };
}

Take number(double& value, double least = 0) {
  return [&value, least](const auto& option, const auto& text) { value = parse_number(option, text, least); };
}

Take text(std::string& value) {
  return [&value](const auto&, const auto& text) { value = text; };
}

Take names(std::vector<std::string>& value) {
  return [&value](const auto&, const auto& text) { value = split_names(text); };
}

Take character(char& value) {
  return [&value](const auto& option, const auto& text) { value = parse_character(option, text); };
}

template <class T>
Take choice(T& value, Choices<T> choices, std::vector<std::string> not_yet = {}) {
  return [&value, choices = std::move(choices), not_yet = std::move(not_yet)](const auto& option, const auto& text) {
    value = choose(option, text, choices, not_yet);
  };
}

/// Of words that stand for themselves.
Take word(std::string& value, const std::vector<std::string>& words, std::vector<std::string> not_yet = {}) {
  Choices<std::string> choices;
  for (const auto& one : words) choices.emplace_back(one, one);
  return choice(value, std::move(choices), std::move(not_yet));
}

void add_data_and_model(CLI::App& app, TrainOptions& options) {
  app.option_defaults()->group("Data and model");
  add(app, "--in", "N", "inputs of the layer, for synthetic data [10]", whole(options.in));
  add(app, "--out", "N", "outputs of the layer, for synthetic data [10]", whole(options.out));
  add(app, "--data", "FILE", "table to train on: .csv, .tsv, .npy, .npz, .safetensors, .svm, .h5 [synthetic data]",
      text(options.data));
  add(app, "--target", "NAME|#K,...", "target columns, by name or #K (#0 is the first) [the last column]",
      names(options.columns.targets));
  add(app, "--features", "NAME|#K,...", "feature columns [all that are not targets]", names(options.columns.features));
  add(app, "--header", "WHETHER", "whether a text table begins with names: auto, yes, no [auto]",
      choice<Header>(options.text.header, {{"auto", Header::automatic}, {"yes", Header::yes}, {"no", Header::no}}));
  add(app, "--delimiter", "C", "between the fields of a text table [, or tab for .tsv]",
      character(options.text.delimiter));
  add(app, "--decimal", "C", "decimal point of a text table [.]", character(options.text.decimal));
  add(app, "--format", "NAME", "of --data: csv, tsv, npy, npz, safetensors, libsvm, hdf5 [by extension]",
      choice<FileFormat>(options.file.format, formats()));
  add(app, "--x", "KEY", "array of the features in .npz, .safetensors, .h5 [X]", text(options.file.keys.x));
  add(app, "--y", "KEY", "array of the targets there [y]", text(options.file.keys.y));
  add(app, "--labels", "FILE", "the targets, .npy or .csv of one column; --data then holds features only",
      text(options.file.targets_file));
  app.add_flag("--zero-based", options.file.zero_based, "the indices of a .svm file start at 0");
  app.add_flag("--standardize", options.standardize,
               "scale each feature to mean 0 and deviation 1; folded back on saving");
  app.add_flag_callback(
      "--no-bias", [&options] { options.bias = false; }, "a layer without bias");
  add(app, "--init", "HOW", "first parameters: torch (nn.Linear's for --seed), zeros, or a safetensors file [torch]",
      text(options.init));
  add(app, "--loss", "NAME", "mse [mse]", word(options.loss, {"mse"}, {"huber", "bce", "cross-entropy"}));
}

void add_training(CLI::App& app, TrainOptions& options) {
  app.option_defaults()->group("Training");
  add(app, "--optimizer", "NAME", "sgd [sgd]", word(options.optimizer, {"sgd"}, {"adam", "adamw", "lbfgs", "exact"}));
  add(app, "--lr", "X", "learning rate [0.001]", number(options.sgd.lr));
  add(app, "--momentum", "X", "as in torch.optim.SGD [0]", number(options.sgd.momentum));
  add(app, "--dampening", "X", "as in torch.optim.SGD [0]",
      number(options.sgd.dampening, -std::numeric_limits<double>::infinity()));
  app.add_flag("--nesterov", options.sgd.nesterov, "as in torch.optim.SGD");
  add(app, "--weight-decay", "X", "as in torch.optim.SGD [0]", number(options.sgd.weight_decay));
  add(app, "--batch-size", "N", "rows for each rank at each step [20 for synthetic data]", whole(options.batch_size));
  add(app, "--global-batch", "N|full", "rows over all ranks at each step [256 with data]",
      [&options](const auto& option, const auto& text) {
        options.global_batch = text == "full" ? 0 : parse_whole<std::int64_t>(option, text, 1);
      });
  add(app, "--epochs", "N", "passes over the data [1]", whole(options.epochs));
  add(app, "--steps", "N", "optimizer steps to stop after", whole(options.steps));
  add(app, "--seed", "N", "of the first parameters and of the order of the rows [0]",
      [&options](const auto& option, const auto& text) { options.seed = parse_whole<std::uint64_t>(option, text, 0); });
  app.add_flag_callback(
      "--no-shuffle", [&options] { options.shuffle = false; }, "take the rows in the order of the file");
  app.add_flag("--drop-last", options.drop_last, "leave out an epoch's last step when it is short");
  add(app, "--average", "WHAT", "mean over all rows of a step, or PyTorch's of the ranks' means: rows, ranks [rows]",
      choice<Averaging>(options.averaging, {{"rows", Averaging::rows}, {"ranks", Averaging::ranks}}));
}

void add_devices_and_output(CLI::App& app, TrainOptions& options) {
  app.option_defaults()->group("Devices");
  add(app, "--device", "NAME", "auto, cuda, cpu; auto: CUDA when every rank has a GPU of its own [auto]",
      choice<DeviceRequest>(
          options.device,
          {{"auto", DeviceRequest::automatic}, {"cuda", DeviceRequest::cuda}, {"cpu", DeviceRequest::cpu}}));
  add(app, "--backend", "NAME", "auto, nccl, mpi; auto: NCCL on GPUs, MPI on CPUs [auto]",
      word(options.backend, {"auto", "nccl", "mpi"}));
  add(app, "--precision", "NAME", "fp32 [fp32]", word(options.precision, {"fp32"}, {"tf32", "bf16", "fp64"}));
  add(app, "--timeout", "SECONDS", "after which a collective has failed [120]", whole(options.timeout_s, 1'000'000));

  app.option_defaults()->group("Output");
  add(app, "--save", "FILE", "write the model here, with PyTorch's names (safetensors)", text(options.save));
  add(app, "--metrics", "FILE", "write a JSON object a line for start, steps, epochs, end", text(options.metrics));
  add(app, "--log-every", "N",
      "steps between step lines of --metrics [1 up to 1000 --steps; else 20 in all, or none with --data]",
      whole(options.log_every));
  app.add_flag("--evaluate-train", options.evaluate_train,
               "the loss over all training rows, after each epoch and at the end");
  app.add_flag("--quiet", options.quiet, "print errors and warnings only");
}

bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // of files that are not there yet
  return fs::equivalent(a, b, ignored) || fs::weakly_canonical(fs::absolute(a, ignored), ignored) ==
                                              fs::weakly_canonical(fs::absolute(b, ignored), ignored);
}

/// Writing the one would destroy the other. (A model may be trained on in its place: it is replaced as a whole.)
void refuse_one_file_for_two(const TrainOptions& options) {
  const std::array<std::pair<const char*, std::string>, 5> files{
      {{"--data", options.data},
       {"--init", options.init_is_file() ? options.init : ""},
       {"--save", options.save},
       {"--metrics", options.metrics},
       {"--labels", options.file.targets_file}}};
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto& [one, one_path] = files[j];
      const auto& [other, other_path] = files[i];
      const bool in_place = j == 1 && i == 2;
      if (!one_path.empty() && !other_path.empty() && !in_place && same_file(one_path, other_path)) {
        throw UseError(fmt::format("{} and {} name the same file, {}; give each its own", one, other, other_path));
      }
    }
  }
}

void refuse_contradictions(const CLI::App& app, const TrainOptions& options) {
  const auto refuse_given = [&app](const char* names, const std::string& why) {
    for (const auto& name : split_names(names, ' ')) {
      if (app.count(name) > 0) throw UseError(name + " " + why);
    }
  };
  if (options.sgd.nesterov && !(options.sgd.momentum > 0 && options.sgd.dampening == 0)) {
    throw UseError("--nesterov needs a --momentum above 0 and a --dampening of 0");
  }
  if (options.text.delimiter == options.text.decimal) {
    throw UseError("--delimiter and --decimal are the same character");
  }
  if (options.standardize && !options.bias) {
    throw UseError("--standardize needs a bias to fold the features' means into; leave out --no-bias");
  }
  if (options.batch_size && options.global_batch) {
    throw UseError("--batch-size (rows for each rank) and --global-batch (rows over all ranks) exclude each other");
  }
  if (options.data.empty()) {
    refuse_given(
        "--target --features --header --delimiter --decimal --format --x --y --labels --zero-based --standardize "
        "--evaluate-train --no-shuffle --drop-last",
        "needs --data FILE: there is no table to apply it to");
    if (options.global_batch == 0) throw UseError("--global-batch full needs --data FILE: synthetic rows have no end");
  } else {
    refuse_given("--in --out", "is for synthetic data: a table has its own columns; see --target and --features");
    refuse_for_other_formats(options, refuse_given);
    if (options.metrics.empty()) refuse_given("--log-every", "with --data needs --metrics FILE: its lines go there");
  }
  refuse_one_file_for_two(options);
}

bool is_in(const char* list, const std::string& name) {
  const auto names = split_names(list, ' ');
  return std::find(names.begin(), names.end(), name) != names.end();
}

void refuse_not_yet_command(const std::string& name) {
  if (!is_in(not_yet_commands, name)) return;
  throw UseError(
      fmt::format("the command {} is not there yet in linear_ddp {}; there are train and info", name, version()));
}

[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  if (is_in(not_yet_options, name)) {
    throw UseError(
        fmt::format("{} is not there yet in linear_ddp {}; `linear_ddp --help` lists what is", name, version()));
  }
  refuse_not_yet_command(name);
  if (is_in("train info", name)) throw UseError(fmt::format("the command comes first: `linear_ddp {} ...`", name));
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name(false, false));
  const std::string near = nearest(name, known);
  throw UseError(fmt::format("unknown {} '{}'{}; `linear_ddp --help` lists the options",
                             name.starts_with('-') ? "option" : "argument", argument,
                             near.empty() ? "" : fmt::format(", did you mean {}?", near)));
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty()) {
    const std::string& first = arguments.front();
    refuse_not_yet_command(first);
    if (first == "info") line.command = Command::info;
    if (is_in("train info", first)) arguments.erase(arguments.begin());
  }
  for (const auto& argument : arguments) {  // of which CLI11 would make the next argument the value
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      throw UseError(fmt::format("{}: its value is empty", argument.substr(0, argument.size() - 1)));
    }
  }

  const bool is_train = line.command == Command::train;
  CLI::App app{is_train ? "Distributed data-parallel training of linear models."
                        : "What this job sees: ranks, hosts, devices, libraries.",
               is_train ? "mpirun -np N linear_ddp [train]" : "mpirun -np N linear_ddp info"};
  bool wants_version = false;
  app.add_flag("--version", wants_version, "the version of linear_ddp");
  if (is_train) {
    app.footer(help_footer);
    add_data_and_model(app, line.train);
    add_training(app, line.train);
    add_devices_and_output(app, line.train);
  }
  app.allow_extras();
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    line.text = app.help();
    return line;
  } catch (const CLI::ParseError& error) {
    throw UseError(fmt::format("{}; see `linear_ddp --help`", error.what()));
  }
  if (wants_version) {
    line.text = fmt::format("linear_ddp {}\n", version());
    return line;
  }
  if (const auto extras = app.remaining(); !extras.empty()) refuse_unknown(app, extras.front());
  if (is_train) refuse_contradictions(app, line.train);
  return line;
}

}  // namespace ddp::app
