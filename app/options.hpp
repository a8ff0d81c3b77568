#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/data/table.hpp>
#include <linear_ddp/device/select.hpp>
#include <linear_ddp/nn/activation.hpp>
#include <linear_ddp/optim/adam.hpp>
#include <linear_ddp/optim/lr_schedule.hpp>
#include <linear_ddp/optim/sgd.hpp>
#include <linear_ddp/parallel/distributed_data_parallel.hpp>
#include "task.hpp"

namespace ddp::app {

enum class Command { train, evaluate, predict, bench, info };

/// --compress
struct Compression {
  enum class Kind { none, fp16, bf16, powersgd } kind = Kind::none;
  PowerSgdOptions powersgd;
  std::string text = "none";
};

/// --checkpoint and what goes with it.
struct CheckpointOptions {
  std::string folder;                                ///< empty: none
  std::optional<std::int64_t> every_steps, every_s;  ///< neither: at the end only, and before a signal stops it
  std::int64_t keep = 3;
  bool resume = false;
};

/// The command line of `linear_ddp [train]`, checked.
struct TrainOptions {
  std::int64_t in = 10, out = 10;  ///< of the synthetic data
  std::string data;                ///< a file or a pattern; empty: synthetic
  TextFormat text;
  ColumnSelection columns;
  FileOptions file;
  std::optional<Task> given_task;
  Residence residence = Residence::automatic;
  bool standardize = false;
  bool bias = true;
  std::vector<std::int64_t> hidden;  ///< sizes of hidden layers
  Activation activation = Activation::relu;
  std::string init = "torch";  ///< or "zeros", or a file
  std::string given_loss;      ///< empty: by the task
  double label_smoothing = 0;
  std::vector<double> class_weights;
  bool balanced_classes = false;
  std::string optimizer = "sgd", precision = "fp32";
  double lr = 0.001;
  std::optional<double> weight_decay;
  SgdOptions sgd;    ///< but for lr and weight_decay
  AdamOptions adam;  ///< likewise
  GradientOptions gradient;
  std::vector<std::pair<std::string, std::vector<double>>> sweep;  ///< lr, weight-decay, l2: values to train heads with
  std::optional<double> c, alpha;                                  ///< scikit-learn's spellings of gradient.l2
  std::vector<double> l2_path;  ///< values of gradient.l2 to choose from; empty: none
  std::optional<std::int64_t> folds;
  bool one_standard_error = false;
  std::string schedule_text = "constant";
  LrSchedule schedule;
  std::int64_t accumulate = 1;
  std::optional<std::int64_t> batch_size;    ///< rows a rank a step
  std::optional<std::int64_t> global_batch;  ///< rows over all ranks; 0: full
  std::optional<std::int64_t> epochs, steps;
  std::uint64_t seed = 0;
  bool shuffle = true, drop_last = false, deterministic = false, zero = false;
  Averaging averaging = Averaging::rows;
  DeviceRequest device = DeviceRequest::automatic;
  std::string backend = "auto";  ///< or "nccl", "mpi"
  BucketOptions buckets;
  Compression compression;
  std::int64_t timeout_s = 120;
  std::string save, metrics;
  CheckpointOptions checkpoint;
  std::optional<std::int64_t> log_every;
  bool evaluate_train = false, summary = false, quiet = false;
  std::string valid;  ///< a file, or a fraction of the rows; empty: none
  std::optional<std::int64_t> patience;
  bool save_best = false;
  std::optional<double> tolerance;

  /// As given, or by the loss.
  [[nodiscard]] Task task() const;
  /// As given, or by the task.
  [[nodiscard]] std::string loss() const;
  /// When --valid is one, else nothing.
  [[nodiscard]] std::optional<double> valid_fraction() const;
  /// --optimizer lbfgs --precision fp64: on the host, on the table's own numbers.
  [[nodiscard]] bool lbfgs_in_float64() const { return optimizer == "lbfgs" && precision == "fp64"; }
  [[nodiscard]] bool init_is_file() const { return init != "torch" && init != "zeros"; }
  /// Every option by its name on the command line, but for `device` and `backend`; null: left to the program.
  [[nodiscard]] nlohmann::ordered_json to_json() const;
};

/// The command line of `linear_ddp evaluate` and of `predict`, checked.
struct UseOptions {
  std::string model, data, out, metrics;
  TextFormat text;
  ColumnSelection columns;
  FileOptions file;
  std::optional<Task> given_task;
  Residence residence = Residence::automatic;
  DeviceRequest device = DeviceRequest::automatic;
  bool confusion = false, probabilities = false, quiet = false;
  std::int64_t timeout_s = 120;
};

/// The command line of `linear_ddp bench`, checked.
struct BenchOptions {
  TrainOptions step;       ///< what of a training a step depends on
  bool has_shape = false;  ///< one shape, of `step`; else several of the program's own
  std::int64_t rounds = 21;
  std::string json;
};

struct CommandLine {
  Command command = Command::train;
  TrainOptions train;
  UseOptions use;
  BenchOptions bench;
  [[nodiscard]] std::int64_t timeout_s() const {
    return command == Command::train   ? train.timeout_s
           : command == Command::bench ? bench.step.timeout_s
                                       : use.timeout_s;
  }
  std::optional<std::string> text;  ///< asked for instead of a run: --help, --version
};

/// Throws UseError: what is wrong, what would be accepted, the nearest known spelling.
[[nodiscard]] CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace ddp::app
