#include "model_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/data/safetensors.hpp>
#include <linear_ddp/nn/activation.hpp>

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
  StoredFile file = file_of(provenance);
  const LinearShape& shape = model.shape();
  if (!shape.hidden.empty()) file.metadata["activation"] = name_of(shape.activation);
  const auto& slots = model.layout().slots();
  std::vector<std::vector<float>> values;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) values.push_back(model.download(slot));
  if (provenance.standardizer) provenance.standardizer->fold_into(values[0], values.at(1));
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    file.tensors.push_back(make_f32(slots[slot].name, slots[slot].shape, values[slot]));
  }
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
  if (standardizer) standardizer->unfold(values[0], values.at(1));  // which needs a bias
  for (std::size_t slot = 0; slot < slots.size(); ++slot) model.upload(slot, values[slot]);
}

void initialise(Model& model, const TrainOptions& options, const std::optional<Standardizer>& standardizer, int rank,
                TorchGenerator& generator) {
  std::size_t slot = 0;
  for (const LinearLayer& layer : model.layout().layers()) {
    std::vector<float> weight(static_cast<std::size_t>(layer.in * layer.out));
    std::vector<float> bias(layer.bias < 0 ? 0 : static_cast<std::size_t>(layer.out));
    init_linear(generator, layer.in, weight, bias);
    if (options.init != "torch") continue;
    model.upload(slot++, weight);
    if (!bias.empty()) model.upload(slot++, bias);
  }
  if (options.init_is_file() && rank == 0) load_model(options.init, model, standardizer ? &*standardizer : nullptr);
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

namespace {

std::string word_of(const StoredFile& file, const char* key) {
  const auto found = file.metadata.find(key);
  return found == file.metadata.end() ? std::string{} : found->second;
}

/// "" for a tensor of a single layer, "2." for one of a stack's; nothing for other names.
std::optional<std::string> prefix_of(const std::string& tensor) {
  for (const std::string_view kind : {"weight", "bias"}) {
    if (!tensor.ends_with(kind)) continue;
    std::string prefix = tensor.substr(0, tensor.size() - kind.size());
    const auto digits = prefix.find_first_not_of("0123456789");
    const bool numbered =
        prefix.size() > 1 && prefix.size() < 10 && digits == prefix.size() - 1 && prefix.back() == '.';
    if (prefix.empty() || numbered) return prefix;
  }
  return std::nullopt;
}

/// The shape and the parameters, from the tensors.
StoredModel layers_of(const StoredFile& file, const std::string& path) {
  const auto refuse = [&](const std::string& why) { throw UseError(fmt::format("{}: {}", path, why)); };
  std::map<int, std::string> prefixes;  // in the order of their numbers
  for (const auto& tensor : file.tensors) {
    const auto prefix = prefix_of(tensor.name);
    if (!prefix) refuse(fmt::format("holds a tensor '{:.40}'; a linear layer has weight and bias", tensor.name));
    prefixes.emplace(prefix->empty() ? -1 : std::stoi(*prefix), *prefix);
  }
  if (prefixes.empty()) refuse("holds no tensor; a linear layer has weight and bias");
  StoredModel model;
  model.shape.bias = std::cmp_less(prefixes.size(), file.tensors.size());
  if (file.tensors.size() != prefixes.size() * (model.shape.bias ? 2 : 1)) {
    refuse(fmt::format("holds {} tensors for {} layer{}: each has a weight and all or none a bias", file.tensors.size(),
                       prefixes.size(), prefixes.size() == 1 ? "" : "s"));
  }
  for (const auto& [number, prefix] : prefixes) {
    const StoredTensor& weight = file.at(prefix + "weight");
    if (weight.shape.size() != 2) refuse(fmt::format("{} has {} dimensions, not 2", weight.name, weight.shape.size()));
    const std::int64_t out = weight.shape[0], in = weight.shape[1];
    if (in < 1 || out < 1) refuse(weight.name + " is empty");
    if (model.layers.empty()) {
      model.shape.in = in;
    } else {
      if (in != model.shape.out) {
        refuse(fmt::format("{} has {} inputs, and the layer before it {} outputs", weight.name, in, model.shape.out));
      }
      model.shape.hidden.push_back(model.shape.out);
    }
    model.shape.out = out;
    model.is_f64 = weight.dtype == "F64";
    LinearValues& layer = model.layers.emplace_back(LinearValues{weight.doubles(), {}});
    if (!model.shape.bias) continue;
    const StoredTensor& bias = file.at(prefix + "bias");
    if (bias.shape != std::vector{out}) {
      refuse(fmt::format("{} has shape [{}], not [{}]", bias.name, fmt::join(bias.shape, ", "), out));
    }
    layer.bias = bias.doubles();
  }
  if (model.shape.hidden.empty()) return model;
  const auto activation = activation_of(word_of(file, "activation"));
  if (!activation) {
    refuse(fmt::format("has {} layers, and no entry \"activation\" (relu, gelu or tanh) among its metadata",
                       model.layers.size()));
  }
  model.shape.activation = *activation;
  return model;
}

}  // namespace

StoredModel read_model(const std::string& path) {
  const StoredFile file = read_safetensors(path);
  const auto refuse = [&](const std::string& why) { throw UseError(fmt::format("{}: {}", path, why)); };
  StoredModel model = layers_of(file, path);
  const auto text = [&](const char* key) { return word_of(file, key); };
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
