#include "model_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/data/safetensors.hpp>

namespace ddp::app {

namespace {

StoredFile file_of(const Provenance& provenance) {
  StoredFile file;
  file.metadata = {{"format", "pt"},
                   {"linear_ddp", std::string(version())},
                   {"task", name_of(provenance.task)},
                   {"loss", provenance.loss}};
  const auto add_list = [&](const char* key, const std::vector<std::string>& list) {
    if (!list.empty()) file.metadata[key] = nlohmann::json(list).dump();
  };
  add_list("features", provenance.feature_names);
  add_list("targets", provenance.target_names);
  add_list("classes", provenance.classes);
  if (provenance.standardizer) {
    file.metadata["standardized"] = "the features were; weight and bias are for raw ones";
  }
  return file;
}

}  // namespace

void save_model(const std::string& path, const Model& model, const Provenance& provenance) {
  std::vector<float> weight = model.download(0);
  std::vector<float> bias = model.shape().bias ? model.download(1) : std::vector<float>{};
  if (provenance.standardizer) provenance.standardizer->fold_into(weight, bias);
  StoredFile file = file_of(provenance);
  const auto& slots = model.layout().slots();
  file.tensors.push_back(make_f32(slots[0].name, slots[0].shape, weight));
  if (model.shape().bias) file.tensors.push_back(make_f32(slots[1].name, slots[1].shape, bias));
  write_safetensors(path, file);
}

void save_model(const std::string& path, LinearValues values, std::int64_t in, bool as_f64,
                const Provenance& provenance) {
  if (provenance.standardizer) provenance.standardizer->fold_into(values.weight, values.bias);
  StoredFile file = file_of(provenance);
  const auto add = [&](const char* name, std::vector<std::int64_t> shape, const std::vector<double>& value) {
    file.tensors.push_back(as_f64 ? make_f64(name, std::move(shape), value)
                                  : make_f32(name, std::move(shape), {value.begin(), value.end()}));
  };
  const std::int64_t out = std::ssize(values.weight) / in;
  add("weight", {out, in}, values.weight);
  if (!values.bias.empty()) add("bias", {out}, values.bias);
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

Task StoredModel::task_or(const std::optional<Task>& given, const std::string& path) const {
  if (task && given && *task != *given) {
    throw UseError(fmt::format("--task {}: {} is a model for {}", name_of(*given), path, name_of(*task)));
  }
  const Task own = task ? *task : given.value_or(Task::regression);
  if ((own == Task::binary && shape.out != 1) || (own == Task::multiclass && shape.out < 2)) {
    throw UseError(fmt::format("{}: a model of {} output{} is none for --task {}", path, shape.out,
                               shape.out == 1 ? "" : "s", name_of(own)));
  }
  return own;
}

LossKind StoredModel::loss_kind(Task of) const {
  if (of == Task::regression) return loss == "huber" ? LossKind::huber : LossKind::mse;
  return of == Task::binary ? LossKind::bce_with_logits : LossKind::cross_entropy;
}

StoredModel read_model(const std::string& path) {
  const StoredFile file = read_safetensors(path);
  const auto refuse = [&](const std::string& why) { throw UseError(fmt::format("{}: {}", path, why)); };
  StoredModel model;
  for (const auto& tensor : file.tensors) {
    if (tensor.name != "weight" && tensor.name != "bias") {
      refuse(fmt::format("holds a tensor '{:.40}'; a linear layer has weight and bias", tensor.name));
    }
  }
  const StoredTensor& weight = file.at("weight");
  if (weight.shape.size() != 2) refuse(fmt::format("weight has {} dimensions, not 2", weight.shape.size()));
  model.shape = {weight.shape[1], weight.shape[0], file.tensors.size() == 2};
  if (model.shape.in < 1 || model.shape.out < 1) refuse("weight is empty");
  model.weight = weight.doubles();
  model.is_f64 = weight.dtype == "F64";
  if (model.shape.bias) {
    const StoredTensor& bias = file.at("bias");
    if (bias.shape != std::vector{model.shape.out}) {
      refuse(fmt::format("bias has shape [{}], not [{}]", fmt::join(bias.shape, ", "), model.shape.out));
    }
    model.bias = bias.doubles();
  }
  const auto text = [&](const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string{} : found->second;
  };
  if (file.metadata.count("linear_ddp") == 0) return model;  // another program's words may mean other things
  for (const Task task : {Task::regression, Task::binary, Task::multiclass}) {
    if (text("task") == name_of(task)) model.task = task;
  }
  if (!model.task) refuse(fmt::format("its task '{:.40}' is not one of this linear_ddp", text("task")));
  model.loss = text("loss");
  const auto list = [&](const char* key, std::int64_t size) {
    std::vector<std::string> names;
    const auto json = nlohmann::json::parse(text(key).empty() ? "[]" : text(key), nullptr, false);
    bool fits = json.is_array();
    for (const auto& name : json) {
      fits = fits && name.is_string();
      if (fits) names.push_back(name.get<std::string>());
    }
    if (!fits || (!names.empty() && std::ssize(names) != size)) {
      refuse(fmt::format("its {} '{:.40}' are not {} names", key, text(key), size));
    }
    return names;
  };
  model.feature_names = list("features", model.shape.in);
  const bool numbers = model.task == Task::regression;
  model.target_names = list("targets", numbers ? model.shape.out : 1);
  if (!numbers) model.classes = list("classes", model.task == Task::binary ? 2 : model.shape.out);
  return model;
}

ColumnSelection columns_of(const StoredModel& model, const ColumnSelection& given, TargetKind kind) {
  ColumnSelection columns = given;
  columns.target_kind = kind;
  if (given.contents == Contents::features_only) {  // a column of that name is no feature, and need not be there
    columns.excluded.insert(columns.excluded.end(), columns.targets.begin(), columns.targets.end());
    columns.targets.clear();
  } else if (columns.targets.empty()) {
    columns.targets = model.target_names;
  }
  if (columns.features.empty() && !repeated_name(model.feature_names)) columns.features = model.feature_names;
  return columns;
}

void require_features(const StoredModel& model, const TableShare& share) {
  const auto& names = share.feature_names;
  if (std::ssize(names) != model.shape.in) {
    throw UseError(
        fmt::format("{}: the model has {} features, but the table {}; name them with --features, or the "
                    "others with --exclude",
                    share.path, model.shape.in, names.size()));
  }
}

}  // namespace ddp::app
