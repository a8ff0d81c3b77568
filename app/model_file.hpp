#pragma once

#include <string>

#include <linear_ddp/data/dataset.hpp>
#include <linear_ddp/data/table.hpp>
#include <linear_ddp/nn/model.hpp>

namespace ddp::app {

/// What the model was trained on; empty names for synthetic data.
struct Provenance {
  std::vector<std::string> feature_names, target_names;
  const Standardizer* standardizer = nullptr;  ///< null: the features were raw
};

/// Writes `weight` and `bias` as torch.nn.Linear's state_dict has them, for raw features.
void save_model(const std::string& path, const Model& model, const Provenance& provenance);

/// Sets a model's parameters from such a file (ours or PyTorch's). Throws UseError when names or shapes differ.
void load_model(const std::string& path, Model& model, const Standardizer* standardizer);

}  // namespace ddp::app
