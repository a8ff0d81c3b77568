#include "model_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/data/safetensors.hpp>

namespace ddp::app {

void save_model(const std::string& path, const Model& model, const Provenance& provenance) {
  std::vector<float> weight = model.download(0);
  std::vector<float> bias = model.shape().bias ? model.download(1) : std::vector<float>{};
  if (provenance.standardizer) provenance.standardizer->fold_into(weight, bias);
  StoredFile file;
  file.metadata = {{"format", "pt"}, {"linear_ddp", std::string(version())}, {"task", "regression"}};
  if (!provenance.feature_names.empty()) {
    file.metadata["features"] = nlohmann::json(provenance.feature_names).dump();
    file.metadata["targets"] = nlohmann::json(provenance.target_names).dump();
  }
  const auto& slots = model.layout().slots();
  file.tensors.push_back(make_f32(slots[0].name, slots[0].shape, weight));
  if (model.shape().bias) file.tensors.push_back(make_f32(slots[1].name, slots[1].shape, bias));
  write_safetensors(path, file);
}

void load_model(const std::string& path, Model& model, const Standardizer* standardizer) {
  const StoredFile file = read_safetensors(path);
  const auto& slots = model.layout().slots();
  for (const auto& tensor : file.tensors) {
    if (std::none_of(slots.begin(), slots.end(), [&](const auto& slot) { return slot.name == tensor.name; })) {
      throw UseError(fmt::format("{}: holds a tensor '{:.40}', which this model{} does not have", path, tensor.name,
                                 model.shape().bias ? "" : " (--no-bias)"));
    }
  }
  std::vector<std::vector<float>> values;
  for (const auto& slot : slots) {
    const StoredTensor& tensor = file.at(slot.name);
    if (tensor.shape != slot.shape) {
      throw UseError(fmt::format("{}: {} has shape [{}], the model needs [{}]", path, slot.name,
                                 fmt::join(tensor.shape, ", "), fmt::join(slot.shape, ", ")));
    }
    values.push_back(tensor.floats());
  }
  values.resize(2);  // without a bias the second stays empty
  if (standardizer) standardizer->unfold(values[0], values[1]);
  for (std::size_t slot = 0; slot < slots.size(); ++slot) model.upload(slot, values[slot]);
}

}  // namespace ddp::app
