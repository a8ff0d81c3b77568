#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>

#include <linear_ddp/base/nearest.hpp>
#include "format_options.hpp"
#include "option_groups.hpp"
#include "option_texts.hpp"
#include "option_values.hpp"
#include "refusals.hpp"

namespace ddp::app {
namespace {

bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // of files that are not there yet
  return fs::equivalent(a, b, ignored) || fs::weakly_canonical(fs::absolute(a, ignored), ignored) ==
                                              fs::weakly_canonical(fs::absolute(b, ignored), ignored);
}

using Files = std::vector<std::pair<const char*, std::string>>;

/// Writing the one would destroy the other. (A model may be trained on in its place: it is replaced as a whole.)
void refuse_one_file_for_two(const Files& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto& [one, one_path] = files[j];
      const auto& [other, other_path] = files[i];
      const bool in_place = one == std::string("--init") && other == std::string("--save");
      const bool only_read = one == std::string("--data") && other == std::string("--valid");
      if (!one_path.empty() && !other_path.empty() && !in_place && !only_read && same_file(one_path, other_path)) {
        throw UseError(fmt::format("{} and {} name the same file, {}; give each its own", one, other, other_path));
      }
    }
  }
}

void refuse_reading_options(const CLI::App& app, const std::string& data, const TextFormat& text,
                            const FileOptions& file) {
  if (text.delimiter == text.decimal) throw UseError("--delimiter and --decimal are the same character");
  refuse_for_other_formats(data, file,
                           [&app](const char* names, const std::string& why) { refuse_given(app, names, why); });
}

/// A gap would be filled with the mean of another table than the model was trained on.
void refuse_foreign_means(const ColumnSelection& columns) {
  if (columns.missing != Missing::mean) return;
  throw UseError("--missing mean is of the table that is trained on, and no other table has it; complete this one");
}

void refuse_validation(const CLI::App& app, const TrainOptions& options) {
  if (options.valid.empty()) refuse_given(app, "--patience --save-best", "needs --valid: it is of the validation loss");
  const auto fraction = options.valid_fraction();
  if (!options.valid.empty() && !fraction) refuse_foreign_means(options.columns);
  if (fraction && !(*fraction > 0 && *fraction < 1)) {
    throw UseError(fmt::format("--valid {:.40} is neither a fraction between 0 and 1 nor a file", options.valid));
  }
}

void refuse_contradictions(const CLI::App& app, Command command, const UseOptions& options) {
  if (options.model.empty()) throw UseError("--model FILE is missing: a model that train has saved");
  if (options.data.empty()) throw UseError("--data FILE is missing: the table to use the model on");
  refuse_reading_options(app, options.data, options.text, options.file);
  if (command == Command::predict) {
    if (options.out.empty()) throw UseError("--out FILE is missing: where to write the predictions, .csv or .npy");
    if (!options.out.ends_with(".csv") && !options.out.ends_with(".npy")) {
      throw UseError(fmt::format("--out {}: predictions are written as .csv or .npy", options.out));
    }
    if (options.columns.missing == Missing::drop) {
      throw UseError("--missing drop would leave rows without a prediction; accepted here: error");
    }
    refuse_given(app, "--labels --y", "names targets, and predict reads none");
  }
  refuse_foreign_means(options.columns);
  refuse_one_file_for_two(
      {{"--model", options.model}, {"--data", options.data}, {"--out", options.out}, {"--metrics", options.metrics}});
}

/// And notes whether a shape is given.
void refuse_contradictions(const CLI::App& app, BenchOptions& options) {
  if (options.step.hidden.empty()) refuse_given(app, "--activation", "needs --hidden: it is between layers");
  for (const char* name : {"--in", "--out", "--hidden", "--batch-size"}) options.has_shape |= app.count(name) > 0;
  Compression& compression = options.step.compression;
  if (compression.kind != Compression::Kind::powersgd) return;
  if (std::count(compression.text.begin(), compression.text.end(), ':') > 1) {
    throw UseError("--compress " + compression.text + ": bench times steps that are compressed; leave out START");
  }
  compression.powersgd.start_step = 1;
}

void refuse_contradictions(const CLI::App& app, const TrainOptions& options) {
  const auto refuse_given = [&app](const char* names, const std::string& why) { app::refuse_given(app, names, why); };
  refuse_for_optimum(app, options);
  if (options.optimizer != "sgd") {
    refuse_given("--momentum --dampening --nesterov", "is SGD's: use --optimizer sgd, or leave it out");
  } else {
    refuse_given("--betas --eps --amsgrad", "is Adam's: use --optimizer adam or adamw, or leave it out");
  }
  if (options.sgd.nesterov && !(options.sgd.momentum > 0 && options.sgd.dampening == 0)) {
    throw UseError("--nesterov needs a --momentum above 0 and a --dampening of 0");
  }
  if (options.task() == Task::regression) refuse_given("--class-weights", "needs classes: --task binary or multiclass");
  if (options.loss() != "cross-entropy") refuse_given("--label-smoothing", "is cross entropy's: --task multiclass");
  refuse_reading_options(app, options.data, options.text, options.file);
  refuse_validation(app, options);
  if (options.standardize && !options.bias) {
    throw UseError("--standardize needs a bias to fold the features' means into; leave out --no-bias");
  }
  const std::string fitting = options.task() == Task::regression ? "mse, huber"
                              : options.task() == Task::binary   ? "bce"
                                                                 : "cross-entropy";
  if (fitting.find(options.loss()) == fitting.npos) {
    throw UseError(fmt::format("--loss {} does not fit --task {}, which has {}", options.loss(),
                               name_of(options.task()), fitting));
  }
  if (options.batch_size && options.global_batch) {
    throw UseError("--batch-size (rows for each rank) and --global-batch (rows over all ranks) exclude each other");
  }
  if (options.data.empty()) {
    refuse_given(
        "--target --features --exclude --weights --missing --task --header --delimiter --decimal --format --x --y "
        "--labels --zero-based --standardize --evaluate-train --no-shuffle --drop-last --class-weights "
        "--label-smoothing --valid --tolerance --C --alpha",
        "needs --data FILE: there is no table to apply it to");
    if (options.task() != Task::regression) {
      throw UseError("--loss " + options.loss() + " needs --data FILE: synthetic targets are numbers, not classes");
    }
    if (options.global_batch == 0) throw UseError("--global-batch full needs --data FILE: synthetic rows have no end");
  } else {
    refuse_given("--in --out", "is for synthetic data: a table has its own columns; see --target and --features");
    if (!options.file.targets_file.empty() && !options.valid.empty() && !options.valid_fraction()) {
      throw UseError("--labels are of --data, so --valid can only be a fraction of its rows");
    }
    if (options.metrics.empty()) refuse_given("--log-every", "with --data needs --metrics FILE: its lines go there");
  }
  refuse_one_file_for_two({{"--data", options.data},
                           {"--init", options.init_is_file() ? options.init : ""},
                           {"--save", options.save},
                           {"--metrics", options.metrics},
                           {"--valid", options.valid_fraction() ? "" : options.valid}});
}

bool is_in(const char* list, const std::string& name) {
  const auto names = split_names(list, ' ');
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  if (is_in(not_yet_options, name)) {
    throw UseError(
        fmt::format("{} is not there yet in linear_ddp {}; `linear_ddp --help` lists what is", name, version()));
  }
  if (is_in(command_names, name)) throw UseError(fmt::format("the command comes first: `linear_ddp {} ...`", name));
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name(false, false));
  const std::string near = nearest(name, known);
  throw UseError(fmt::format("unknown {} '{}'{}; `linear_ddp --help` lists the options",
                             name.starts_with('-') ? "option" : "argument", argument,
                             near.empty() ? "" : fmt::format(", did you mean {}?", near)));
}

/// Whose name is the first argument, which is then taken away; train without one.
Command take_command(std::vector<std::string>& arguments) {
  static const std::map<std::string, Command> commands{{"train", Command::train},
                                                       {"evaluate", Command::evaluate},
                                                       {"predict", Command::predict},
                                                       {"bench", Command::bench},
                                                       {"info", Command::info}};
  if (arguments.empty()) return Command::train;
  const auto found = commands.find(arguments.front());
  if (found == commands.end()) return Command::train;
  arguments.erase(arguments.begin());
  return found->second;
}

struct CommandHelp {
  const char *description, *usage, *footer;
};

const CommandHelp& help_of(Command command) {
  static const std::map<Command, CommandHelp> helps{
      {Command::train,
       {"Distributed data-parallel training of linear models.", "mpirun -np N linear_ddp [train]", help_footer}},
      {Command::evaluate,
       {"What a saved model is worth on a table.", "mpirun -np N linear_ddp evaluate", evaluate_footer}},
      {Command::predict,
       {"What a saved model says of each row of a table.", "mpirun -np N linear_ddp predict", predict_footer}},
      {Command::bench,
       {"A training step of this job, its parts, and the limits of this machine.", "mpirun -np N linear_ddp bench",
        bench_footer}},
      {Command::info, {"What this job sees: ranks, hosts, devices, libraries.", "mpirun -np N linear_ddp info", ""}}};
  return helps.at(command);
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  line.command = take_command(arguments);
  for (const auto& argument : arguments) {  // of which CLI11 would make the next argument the value
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      throw UseError(fmt::format("{}: its value is empty", argument.substr(0, argument.size() - 1)));
    }
  }

  const bool is_train = line.command == Command::train;
  const bool uses_model = line.command == Command::evaluate || line.command == Command::predict;
  const CommandHelp& help = help_of(line.command);
  CLI::App app{help.description, help.usage};
  bool wants_version = false;
  app.add_flag("--version", wants_version, "the version of linear_ddp");
  app.footer(help.footer);
  if (is_train) add_train_options(app, line.train);
  if (line.command == Command::bench) add_bench_options(app, line.bench);
  if (uses_model) add_use_options(app, line.command, line.use);
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
  if (line.command == Command::bench) refuse_contradictions(app, line.bench);
  if (uses_model) refuse_contradictions(app, line.command, line.use);
  return line;
}

}  // namespace ddp::app
