#pragma once

#include <string>

#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/data/table.hpp>
#include <linear_ddp/nn/model.hpp>
#include <linear_ddp/nn/torch_generator.hpp>
#include "options.hpp"
#include "task.hpp"

namespace ddp::app {

/// What the model was trained on; empty names for synthetic data.
struct Provenance {
  Task task = Task::regression;
  std::string loss;  ///< as --loss has it
  std::vector<std::string> feature_names{}, target_names{}, classes{};
  const Standardizer* standardizer = nullptr;  ///< null: the features were raw
};

/// Writes the parameters as torch.nn.Linear's state_dict has them, `weight` and `bias`, or those of a
/// torch.nn.Sequential of layers and activations, `0.weight` …; for raw features.
void save_model(const std::string& path, const Model& model, const Provenance& provenance);

/// A linear layer's parameters in float64, weight [out, in].
struct LinearValues {
  std::vector<double> weight, bias;  ///< bias empty: none
};

/// The same of a layer with so many inputs; as F64 or rounded to F32.
void save_model(const std::string& path, LinearValues values, std::int64_t in, bool as_f64,
                const Provenance& provenance);

/// Sets a model's parameters from such a file (ours or PyTorch's). Throws UseError when names or shapes differ.
void load_model(const std::string& path, Model& model, const Standardizer* standardizer);

/// The first parameters, by --init. For synthetic data each rank draws from a seed of its own, as the original program
/// does; rank 0's model goes to all, and it alone reads a file.
void initialise(Model& model, const TrainOptions& options, const std::optional<Standardizer>& standardizer, int rank,
                TorchGenerator& generator);

/// A model as its file has it. PyTorch's have no more than the parameters: no task, no names.
struct StoredModel {
  LinearShape shape;
  std::vector<LinearValues> layers;
  bool is_f64 = false;  ///< the file has them as F64
  std::optional<Task> task;
  std::string loss;
  std::vector<std::string> feature_names, target_names, classes;

  /// Its own task, or the one given where it has none: regression when neither is. Throws UseError when both are and
  /// differ, or the outputs do not fit the task.
  [[nodiscard]] Task task_or(const std::optional<Task>& given, const std::string& path) const;
  [[nodiscard]] LossKind loss_kind(Task task) const;
};

/// Throws UseError when the file holds anything else than a linear layer or a stack of them (which must name its
/// activation), or says of itself what does not fit.
[[nodiscard]] StoredModel read_model(const std::string& path);

/// The columns of a table that the model is used on: its features by their names when it has names of its own for each,
/// and its targets unless others are given. Contents::features_only leaves out the latter.
[[nodiscard]] ColumnSelection columns_of(const StoredModel& model, const ColumnSelection& given, TargetKind kind);

/// Throws UseError when a table without the names has another number of features.
void require_features(const StoredModel& model, const TableShare& share);

}  // namespace ddp::app
