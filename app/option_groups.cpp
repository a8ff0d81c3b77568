#include "option_groups.hpp"

#include "format_options.hpp"
#include "option_takes.hpp"

namespace ddp::app {
namespace {

/// How a table is read, for every command that reads one.
template <class Options>
void add_reading(CLI::App& app, Options& options) {
  add(app, "--target", "NAME|#K,...", "target columns, by name or #K (#0 is the first) [the last column]",
      names(options.columns.targets));
  add(app, "--features", "NAME|#K,...", "feature columns [all that are nothing else]", names(options.columns.features));
  add(app, "--exclude", "NAME|#K,...", "columns that are no features", names(options.columns.excluded));
  add(app, "--weights", "NAME|#K", "column of the rows' weights [all 1]", text(options.columns.weights));
  add(app, "--missing", "WHAT", "of a row with a gap (nothing, NA, nan): error, drop, mean of the column [error]",
      choice<Missing>(options.columns.missing,
                      {{"error", Missing::error}, {"drop", Missing::drop}, {"mean", Missing::mean}}));
  add(app, "--task", "NAME", "regression; or the target's values are classes: binary, multiclass [by the loss]",
      choice(options.given_task,
             Choices<std::optional<Task>>{
                 {"regression", Task::regression}, {"binary", Task::binary}, {"multiclass", Task::multiclass}}));
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
}

template <class Options>
void add_stream(CLI::App& app, Options& options) {
  app.add_flag_callback(
      "--stream", [&options] { options.residence = Residence::files; },
      "read the features of .npy, .safetensors, .h5 from the file at each use [when they are over half of the memory]");
}

template <class Options>
void add_device(CLI::App& app, Options& options) {
  add(app, "--device", "NAME", "auto, cuda, cpu; auto: CUDA when every rank has a GPU of its own [auto]",
      choice<DeviceRequest>(
          options.device,
          {{"auto", DeviceRequest::automatic}, {"cuda", DeviceRequest::cuda}, {"cpu", DeviceRequest::cpu}}));
}

void add_hidden(CLI::App& app, TrainOptions& options) {
  add(app, "--hidden", "N,...", "sizes of hidden layers before the last [none]",
      [&options](const auto& option, const auto& text) {
        options.hidden.clear();
        for (const auto& size : split_names(text)) {
          options.hidden.push_back(
              parse_whole<std::int64_t>(option, size, 1, std::numeric_limits<std::int32_t>::max()));
        }
      });
  add(app, "--activation", "NAME", "behind each hidden layer: relu, gelu, tanh, as PyTorch's [relu]",
      choice<Activation>(options.activation,
                         {{"relu", Activation::relu}, {"gelu", Activation::gelu}, {"tanh", Activation::tanh}}));
}

void add_backend(CLI::App& app, std::string& backend) {
  add(app, "--backend", "NAME", "auto, nccl, mpi; auto: NCCL on GPUs, MPI on CPUs [auto]",
      word(backend, {"auto", "nccl", "mpi"}));
}

void add_reduction(CLI::App& app, TrainOptions& options) {
  add(app, "--bucket-cap-mb", "X", "MiB of gradients that are reduced as one, in whole layers [25]",
      number(options.buckets.cap_mb));
  add(app, "--first-bucket-mb", "X", "likewise of the first, which is the last layers' [1]",
      number(options.buckets.first_mb));
  add(app, "--compress", "HOW",
      "how gradients travel: none; fp16, bf16; powersgd[:RANK[:START]], after START steps, as PyTorch's hooks "
      "[none; 1, 1000]",
      [&options](const auto& option, const auto& text) { options.compression = parse_compression(option, text); });
}

void add_data_and_model(CLI::App& app, TrainOptions& options) {
  app.option_defaults()->group("Data and model");
  add(app, "--in", "N", "inputs of the layer, for synthetic data [10]", whole(options.in));
  add(app, "--out", "N", "outputs of the layer, for synthetic data [10]", whole(options.out));
  add(app, "--data", "FILE",
      "table to train on: .csv, .tsv, .npy, .npz, .safetensors, .svm, .h5; or a pattern, 'part-*.csv' [synthetic data]",
      text(options.data));
  add_reading(app, options);
  add_stream(app, options);
  add(app, "--valid", "FILE|FRACTION", "data to validate on: a table with the same columns, or such a part of the rows",
      text(options.valid));
  app.add_flag("--standardize", options.standardize,
               "scale each feature to mean 0 and deviation 1; folded back on saving");
  add_hidden(app, options);
  app.add_flag_callback(
      "--no-bias", [&options] { options.bias = false; }, "layers without bias");
  add(app, "--init", "HOW", "first parameters: torch (nn.Linear's for --seed), zeros, or a safetensors file [torch]",
      text(options.init));
  add(app, "--loss", "NAME", "mse, huber, bce, cross-entropy, as PyTorch's [mse; for the tasks bce, cross-entropy]",
      word(options.given_loss, {"mse", "huber", "bce", "cross-entropy"}));
  add(app, "--label-smoothing", "X", "cross entropy's, as in torch.nn.CrossEntropyLoss [0]",
      number(options.label_smoothing));
  add(app, "--class-weights", "X,...|balanced",
      "weights of the classes, in their order; balanced: rows / (classes · own)",
      [&options](const auto& option, const auto& text) {
        options.balanced_classes = text == "balanced";
        options.class_weights = options.balanced_classes ? std::vector<double>{} : parse_numbers(option, text);
      });
}

void add_training(CLI::App& app, TrainOptions& options) {
  app.option_defaults()->group("Training");
  add(app, "--optimizer", "NAME",
      "sgd, adam, adamw, as PyTorch's; lbfgs: all rows at each step; exact: least squares and ridge, solved "
      "directly [sgd]",
      word(options.optimizer, {"sgd", "adam", "adamw", "lbfgs", "exact"}));
  add(app, "--lr", "X", "learning rate [0.001]", number(options.lr));
  add(app, "--schedule", "HOW",
      "of the learning rate over the steps: constant; step:SIZE[:GAMMA]; cosine[:STEPS[:ETA_MIN]]; "
      "linear:START:END:STEPS, as torch's StepLR, CosineAnnealingLR, LinearLR [constant]",
      [&options](const auto& option, const auto& text) {
        options.schedule = parse_schedule(option, text);
        options.schedule_text = text;
      });
  add(app, "--momentum", "X", "as in torch.optim.SGD [0]", number(options.sgd.momentum));
  add(app, "--dampening", "X", "as in torch.optim.SGD [0]",
      number(options.sgd.dampening, -std::numeric_limits<double>::infinity()));
  app.add_flag("--nesterov", options.sgd.nesterov, "as in torch.optim.SGD");
  add(app, "--betas", "X,X", "as in torch.optim.Adam [0.9,0.999]", [&options](const auto& option, const auto& text) {
    const auto betas = parse_numbers(option, text);
    if (betas.size() != 2) throw UseError(fmt::format("{}: '{:.40}' are not two numbers", option, text));
    options.adam.beta1 = betas[0];
    options.adam.beta2 = betas[1];
  });
  add(app, "--eps", "X", "as in torch.optim.Adam [1e-8]", number(options.adam.eps));
  app.add_flag("--amsgrad", options.adam.amsgrad, "as in torch.optim.Adam");
  add(app, "--weight-decay", "X", "as in torch.optim [0; adamw: 0.01]", number(options.weight_decay));
  add(app, "--l2", "X", "penalty X/2 · ‖W‖² beside the mean loss, bias free; with --standardize, of its weights [0]",
      number(options.gradient.l2));
  add(app, "--C", "X", "the same as scikit-learn's LogisticRegression has it: --l2 of 1 / (X · rows)",
      number(options.c, std::numeric_limits<double>::min()));
  add(app, "--alpha", "X", "the same as scikit-learn's Ridge has it: --l2 of 2 · X / (rows · targets)",
      number(options.alpha));
  add(app, "--l2-path", "X,...|LO:HI:N",
      "with exact or lbfgs: the best of several --l2 (N from LO to HI, evenly in their logarithm) on --valid or "
      "--folds",
      [&options](const auto& option, const auto& text) { options.l2_path = parse_path(option, text); });
  add(app, "--folds", "K", "score --l2-path on each of K parts of the rows in turn, trained on the others",
      whole(options.folds, 1000));
  app.add_flag("--one-standard-error", options.one_standard_error,
               "take the strongest penalty whose mean loss is within one standard error of the best of --folds");
  add(app, "--sweep", "NAME=X,...,...",
      "with sgd or adam: a head for each of all combinations of lr, weight-decay, l2 (NAME=X,... or NAME=LO:HI:N), all "
      "trained on one reading of the data; the best one is saved",
      [&options](const auto& option, const auto& text) { options.sweep = parse_sweep(option, text); });
  add(app, "--clip-grad-norm", "X", "largest norm of the gradients, as torch.nn.utils.clip_grad_norm_ [none]",
      number(options.gradient.clip_grad_norm, std::numeric_limits<double>::min()));
  add(app, "--accumulate", "N", "batches for each step of the optimizer [1]", whole(options.accumulate));
  add(app, "--batch-size", "N", "rows for each rank at each step [20 for synthetic data]", whole(options.batch_size));
  add(app, "--global-batch", "N|full", "rows over all ranks at each step [256 with data]",
      [&options](const auto& option, const auto& text) {
        options.global_batch = text == "full" ? 0 : parse_whole<std::int64_t>(option, text, 1);
      });
  add(app, "--epochs", "N", "passes over the data [1]; lbfgs: iterations [1000]", whole(options.epochs));
  add(app, "--steps", "N", "optimizer steps to stop after", whole(options.steps));
  add(app, "--tolerance", "X",
      "stop when an epoch changes the training loss by no more than so much of it [never]; lbfgs: when no component "
      "of the gradient is above it [1e-6, and 4e-6 of the objective; fp64: 1e-10, and 1e-9]",
      number(options.tolerance));
  add(app, "--patience", "N", "stop after so many epochs without a better loss on --valid [never]",
      whole(options.patience));
  app.add_flag("--save-best", options.save_best, "end with the parameters of the best loss on --valid, not the last");
  add(app, "--seed", "N", "of the first parameters and of the order of the rows [0]",
      [&options](const auto& option, const auto& text) { options.seed = parse_whole<std::uint64_t>(option, text, 0); });
  app.add_flag_callback(
      "--no-shuffle", [&options] { options.shuffle = false; }, "take the rows in the order of the file");
  app.add_flag("--drop-last", options.drop_last, "leave out an epoch's last step when it is short");
  app.add_flag("--deterministic", options.deterministic, "the same bits from 1, 2, 4, ... 64 ranks of a device's kind");
  add(app, "--average", "WHAT", "mean over all rows of a step, or PyTorch's of the ranks' means: rows, ranks [rows]",
      choice<Averaging>(options.averaging, {{"rows", Averaging::rows}, {"ranks", Averaging::ranks}}));
}

void add_devices_and_output(CLI::App& app, TrainOptions& options) {
  app.option_defaults()->group("Devices");
  add_device(app, options);
  add_backend(app, options.backend);
  add(app, "--precision", "NAME",
      "fp32; fp64, on the host and saved as F64: with --optimizer exact right to the last digit, with lbfgs to the "
      "rounding of the loss [fp32]",
      word(options.precision, {"fp32", "fp64"}, {"tf32", "bf16"}));
  add_reduction(app, options);
  app.add_flag("--zero", options.zero, "each rank keeps the optimizer's state of a part of the parameters (ZeRO-1)");
  add(app, "--timeout", "SECONDS", "after which a collective has failed [120]", whole(options.timeout_s, 1'000'000));

  app.option_defaults()->group("Output");
  add(app, "--save", "FILE", "write the model here, with PyTorch's names (safetensors)", text(options.save));
  add(app, "--checkpoint", "DIR",
      "with sgd, adam, adamw: write the whole state of the training into this folder, at its end and when SIGTERM, "
      "SIGUSR1, SIGUSR2 or SIGINT stops it",
      text(options.checkpoint.folder));
  add(app, "--checkpoint-every", "STEPS|30s|10m|2h", "and so often [never]",
      [&options](const auto& option, const auto& text) { parse_every(option, text, options.checkpoint); });
  add(app, "--keep", "N", "how many of them stay, the newest [3]", whole(options.checkpoint.keep));
  app.add_flag(
      "--resume", options.checkpoint.resume,
      "go on from the newest complete one, with any number of ranks, as if there had been no break; from the "
      "beginning when there is none. --steps and --epochs count from the beginning; they, --lr, --schedule and "
      "the places of files may be others than before, what else shapes the training must be the same. "
      "--metrics goes on in the same file");
  add(app, "--metrics", "FILE", "write a JSON object a line for start, steps, epochs, end", text(options.metrics));
  add(app, "--log-every", "N",
      "steps between step lines of --metrics [1 up to 1000 --steps; else 20 in all, or none with --data]",
      whole(options.log_every));
  app.add_flag("--evaluate-train", options.evaluate_train,
               "the loss over all training rows, after each epoch and at the end");
  app.add_flag("--summary", options.summary, "with --optimizer exact: each weight and its standard error");
  app.add_flag("--quiet", options.quiet, "print errors and warnings only");
}

}  // namespace

void add_train_options(CLI::App& app, TrainOptions& options) {
  add_data_and_model(app, options);
  add_training(app, options);
  add_devices_and_output(app, options);
}

void add_bench_options(CLI::App& app, BenchOptions& options) {
  TrainOptions& step = options.step;
  app.option_defaults()->group("Step");
  add(app, "--in", "N", "inputs of the layer [10; without any size: several shapes, one after the other]",
      whole(step.in));
  add(app, "--out", "N", "outputs of the layer [10]", whole(step.out));
  add_hidden(app, step);
  add(app, "--batch-size", "N", "rows for each rank at each step [20]", whole(step.batch_size));
  add(app, "--loss", "NAME", "mse, huber, bce, cross-entropy, as PyTorch's [mse]",
      word(step.given_loss, {"mse", "huber", "bce", "cross-entropy"}));
  add(app, "--optimizer", "NAME", "sgd, adam, adamw, as PyTorch's [sgd]",
      word(step.optimizer, {"sgd", "adam", "adamw"}));
  add(app, "--rounds", "N", "how often each part is timed, in turns; medians are told [21]",
      whole(options.rounds, 10'000));
  app.option_defaults()->group("Devices");
  add_device(app, step);
  add_backend(app, step.backend);
  add_reduction(app, step);
  add(app, "--timeout", "SECONDS", "after which a collective has failed [120]", whole(step.timeout_s, 1'000'000));
  app.option_defaults()->group("Output");
  add(app, "--json", "FILE", "write a JSON object a line for each shape", text(options.json));
  app.add_flag("--quiet", step.quiet, "print errors and warnings only");
}

void add_use_options(CLI::App& app, Command command, UseOptions& options) {
  const bool evaluates = command == Command::evaluate;
  app.option_defaults()->group("Model and data");
  add(app, "--model", "FILE", "a safetensors file of train --save, or a Linear's state_dict of PyTorch",
      text(options.model));
  add(app, "--data", "FILE", "table: .csv, .tsv, .npy; or a pattern, 'part-*.csv'", text(options.data));
  add_reading(app, options);
  if (evaluates) add_stream(app, options);
  app.option_defaults()->group("Output");
  if (evaluates) {
    app.add_flag("--confusion", options.confusion, "print how often each class was told for each");
    add(app, "--metrics", "FILE", "write the scores here, as a line of JSON", text(options.metrics));
    add_device(app, options);
  } else {
    add(app, "--out", "FILE", "write a line for each row here: .csv or .npy", text(options.out));
    app.add_flag("--probabilities", options.probabilities, "also of all classes their probabilities");
  }
  add(app, "--timeout", "SECONDS", "after which a start of a device has failed [120]",
      whole(options.timeout_s, 1'000'000));
  app.add_flag("--quiet", options.quiet, "print errors and warnings only");
}

}  // namespace ddp::app
