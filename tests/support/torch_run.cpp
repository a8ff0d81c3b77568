#include "support/torch_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace ddp::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string text_or_empty(const json& value) {
  return value.is_null() ? std::string{} : value.get<std::string>();
}

template <class T>
std::optional<T> optional_of(const json& value) {
  return value.is_null() ? std::optional<T>{} : value.get<T>();
}

/// An object like {"name": "sgd", "lr": 0.1, "nesterov": true}, or null.
std::pair<std::string, std::map<std::string, double>> named_numbers(const json& object) {
  std::pair<std::string, std::map<std::string, double>> result;
  for (const auto& [key, value] : object.items()) {
    if (key == "name")
      result.first = value.get<std::string>();
    else
      result.second[key] = value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0) : value.get<double>();
  }
  return result;
}

RecordedTensor recorded(const StoredTensor& tensor) {
  if (tensor.dtype != "I64") return {tensor.shape, tensor.floats()};
  const auto values = integers(tensor);
  return {tensor.shape, {values.begin(), values.end()}};
}

void read_settings(const json& recording, TorchRun& run) {
  recording.at("world_size").get_to(run.world_size);
  recording.at("layers").get_to(run.layers);
  recording.at("bias").get_to(run.bias);
  run.activation = text_or_empty(recording.at("activation"));
  recording.at("loss").get_to(run.loss);
  std::tie(run.optimizer, run.optimizer_numbers) = named_numbers(recording.at("optimizer"));
  std::tie(run.schedule, run.schedule_numbers) = named_numbers(recording.at("schedule"));
  recording.at("batch").get_to(run.batch);
  recording.at("steps").get_to(run.steps);
  recording.at("accumulate").get_to(run.accumulate);
  run.clip_grad_norm = optional_of<double>(recording.at("clip_grad_norm"));
  recording.at("seed").get_to(run.seed);
  run.comm_hook = text_or_empty(recording.at("comm_hook"));
  run.uneven = optional_of<std::vector<std::int64_t>>(recording.at("uneven")).value_or(std::vector<std::int64_t>{});
  recording.at("bucket_cap_mb").get_to(run.bucket_cap_mb);
  run.classes = optional_of<std::int64_t>(recording.at("classes"));
  recording.at("losses").get_to(run.losses);
}

void read_tensors(const StoredFile& file, TorchRun& run) {
  for (int rank = 0; rank < run.world_size; ++rank) {
    run.inputs.push_back(recorded(file.at(fmt::format("x.{}", rank))));
    run.targets.push_back(recorded(file.at(fmt::format("y.{}", rank))));
  }
  for (std::size_t layer = 0; layer + 1 < run.layers.size(); ++layer) {
    for (const char* kind : {"weight", "bias"}) {
      if (!run.bias && kind == std::string("bias")) continue;
      const std::string name = fmt::format("{}.{}", layer, kind);
      run.initial[name] = recorded(file.at("init." + name));
      run.grad1[name] = recorded(file.at("grad1." + name));
      run.final[name] = recorded(file.at("final." + name));
    }
  }
}

TorchRun read_run(const fs::path& settings) {
  TorchRun run;
  run.name = settings.stem().string();
  std::ifstream stream(settings);
  read_settings(json::parse(stream), run);
  read_tensors(read_safetensors(fs::path(settings).replace_extension(".safetensors").string()), run);
  return run;
}

std::span<const float> slice(const RecordedTensor& tensor, std::int64_t index) {
  const auto size = tensor.values.size() / static_cast<std::size_t>(tensor.shape.at(0));
  if (index < 0 || index >= tensor.shape[0]) throw std::out_of_range(fmt::format("step {}", index));
  return std::span(tensor.values).subspan(static_cast<std::size_t>(index) * size, size);
}

}  // namespace

std::int64_t TorchRun::steps_of(int rank) const {
  return uneven.empty() ? steps : uneven.at(std::size_t(rank));
}

std::span<const float> TorchRun::x(int rank, std::int64_t step) const {
  return slice(inputs.at(std::size_t(rank)), step);
}

std::span<const float> TorchRun::y(int rank, std::int64_t step) const {
  return slice(targets.at(std::size_t(rank)), step);
}

std::string torch_reference_folder() {
  const char* folder = std::getenv("LINEAR_DDP_TORCH_REFERENCE");
  return folder != nullptr && *folder != '\0' ? folder : LINEAR_DDP_TEST_DATA "/torch";
}

std::vector<TorchRun> find_torch_runs(const std::string& folder) {
  std::vector<TorchRun> runs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".json" && path.stem() != "torch_rng") runs.push_back(read_run(path));
  }
  std::sort(runs.begin(), runs.end(), [](const TorchRun& a, const TorchRun& b) { return a.name < b.name; });
  return runs;
}

std::vector<std::int64_t> integers(const StoredTensor& tensor) {
  if (tensor.dtype != "I64") throw std::invalid_argument(tensor.name + " is " + tensor.dtype + ", not I64");
  std::vector<std::int64_t> values(tensor.bytes.size() / sizeof(std::int64_t));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

}  // namespace ddp::test
