#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <linear_ddp/data/safetensors.hpp>

namespace ddp::test {

/// A tensor of a recording. Targets that PyTorch holds as int64 (class numbers) are floats here too.
struct RecordedTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// One recorded run of PyTorch's DistributedDataParallel; the layout is explained in tests/data/torch/README.md.
struct TorchRun {
  std::string name;
  int world_size = 0;
  std::vector<std::int64_t> layers;  ///< sizes from the inputs to the outputs: one more than there are layers
  bool bias = true;
  std::string activation;  ///< between the layers; empty: none
  std::string loss;
  std::string optimizer;
  std::map<std::string, double> optimizer_numbers;  ///< "lr", "momentum", …; flags are 0 or 1
  std::string schedule;                             ///< empty: a constant rate
  std::map<std::string, double> schedule_numbers;
  std::int64_t batch = 0;  ///< rows of one rank at one step
  std::int64_t steps = 0;
  std::int64_t accumulate = 1;  ///< an optimizer step after so many batches
  std::optional<double> clip_grad_norm;
  std::uint64_t seed = 0;            ///< rank r's generator starts from seed + r
  std::string comm_hook;             ///< empty: none
  std::vector<std::int64_t> uneven;  ///< steps of each rank, under DDP's join; empty: `steps` on all
  double bucket_cap_mb = 0;
  std::optional<std::int64_t> classes;

  std::vector<std::vector<double>> losses;        ///< [rank][step], of the rank's own rows
  std::vector<RecordedTensor> inputs, targets;    ///< [rank], of shape [steps, batch, …]
  std::map<std::string, RecordedTensor> initial;  ///< by "K.weight" and "K.bias" of layer K: before the first step,
  std::map<std::string, RecordedTensor> grad1;    ///< the averaged gradient of the first optimizer step,
  std::map<std::string, RecordedTensor> final;    ///< after the last step

  [[nodiscard]] std::int64_t steps_of(int rank) const;
  [[nodiscard]] std::span<const float> x(int rank, std::int64_t step) const;  ///< [batch, layers.front()]
  [[nodiscard]] std::span<const float> y(int rank, std::int64_t step) const;  ///< [batch, layers.back()], or [batch]
};

/// LINEAR_DDP_TORCH_REFERENCE (environment), or tests/data/torch.
[[nodiscard]] std::string torch_reference_folder();

/// All recorded runs of the folder, sorted by name.
[[nodiscard]] std::vector<TorchRun> find_torch_runs(const std::string& folder = torch_reference_folder());

/// The values of an I64 tensor.
[[nodiscard]] std::vector<std::int64_t> integers(const StoredTensor& tensor);

}  // namespace ddp::test
