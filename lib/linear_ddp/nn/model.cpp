#include <linear_ddp/nn/model.hpp>

#include <fmt/format.h>

#include <utility>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/base/error.hpp>

namespace ddp {
namespace {

/// Room for the heads' losses and a number of the caller's that keeps whatever follows aligned.
std::int64_t tail_numel(const LinearShape& shape) {
  return round_up(shape.heads + 1, std::int64_t{64 / sizeof(float)});
}

}  // namespace

Model::Model(Device& device, const LinearShape& shape, const LossOptions& loss)
    : device_(device),
      shape_(shape),
      loss_(loss),
      layout_(shape),
      parameters_(device, layout_.numel()),
      gradients_(device, layout_.numel() + tail_numel(shape), MemoryUse::communication),
      class_weight_(device, static_cast<std::int64_t>(loss.class_weight.size())) {
  const bool classes = loss.kind == LossKind::cross_entropy;
  if (!classes && (loss.label_smoothing != 0 || !loss.class_weight.empty())) {
    throw UseError("label smoothing and class weights belong to cross entropy");
  }
  if (loss.label_smoothing < 0 || loss.label_smoothing >= 1) {
    throw UseError("the label smoothing must be from 0 to below 1");
  }
  if (!loss.class_weight.empty() && std::cmp_not_equal(loss.class_weight.size(), shape.out)) {
    throw UseError(fmt::format("there are {} class weights for {} classes", loss.class_weight.size(), shape.out));
  }
  class_weight_.upload(loss.class_weight);
}

float* Model::bias_of(Buffer<float>& buffer) noexcept {
  return shape_.bias ? buffer.data() + layout_.slots()[1].offset : nullptr;
}

void Model::forward(std::int64_t rows, const float* x, float* y) {
  device_.linear_forward({rows, shape_.in, shape_.heads * shape_.out, x, parameters_.data(), bias_of(parameters_), y});
}

LinearLoss Model::operation(const Batch& batch, float loss_scale) noexcept {
  LinearLoss op;
  op.rows = batch.rows;
  op.in = shape_.in;
  op.out = shape_.out;
  op.heads = shape_.heads;
  op.x = batch.x;
  op.weight = parameters_.data();
  op.bias = bias_of(parameters_);
  op.target = batch.target;
  op.row_weight = batch.row_weight;
  op.kind = loss_.kind;
  op.label_smoothing = static_cast<float>(loss_.label_smoothing);
  op.class_weight = loss_.class_weight.empty() ? nullptr : class_weight_.data();
  op.loss_scale = loss_scale;
  return op;
}

void Model::backward(const Batch& batch, float loss_scale, bool add, double* sum) {
  LinearLoss op = operation(batch, loss_scale);
  op.loss_sum = sum;
  op.add = add;
  op.loss = gradients_.data() + layout_.numel();
  op.weight_gradient = gradients_.data();
  op.bias_gradient = bias_of(gradients_);
  device_.linear_loss(op);
}

void Model::loss_sum(const Batch& batch, double* sum) {
  LinearLoss op = operation(batch, 1);
  op.loss_sum = sum;
  device_.linear_loss(op);
}

std::vector<Gradient> Model::ranges(std::int64_t head) {
  const auto range = [this](std::int64_t offset, std::int64_t numel) {
    return Gradient{.numel = numel, .parameters = parameters_.data() + offset, .gradients = gradients_.data() + offset};
  };
  std::vector<Gradient> ranges;
  if (shape_.heads == 1) {  // whose padding does no harm in a sweep over all of it
    ranges.push_back(range(0, layout_.numel()));
  } else {
    for (const TensorSlot& slot : layout_.slots()) {
      const std::int64_t numel = slot.numel / shape_.heads;
      ranges.push_back(range(slot.offset + head * numel, numel));
    }
  }
  ranges.front().penalized = shape_.out * shape_.in;
  return ranges;
}

std::vector<float> Model::download_head(std::int64_t head) const {
  std::vector<float> values(static_cast<std::size_t>(layout_.parameters() / shape_.heads));
  float* part = values.data();
  for (const TensorSlot& slot : layout_.slots()) {
    const std::int64_t numel = slot.numel / shape_.heads;
    device_.download(part, parameters_.data() + slot.offset + head * numel,
                     static_cast<std::size_t>(numel) * sizeof(float));
    part += numel;
  }
  return values;
}

void Model::upload_head(std::int64_t head, std::span<const float> values) {
  const std::int64_t expected = layout_.parameters() / shape_.heads;
  if (std::cmp_not_equal(values.size(), expected)) {
    fail("set a head's parameters", fmt::format("it has {} values, not {}", expected, values.size()));
  }
  for (const TensorSlot& slot : layout_.slots()) {
    const std::int64_t numel = slot.numel / shape_.heads;
    const auto part = values.first(static_cast<std::size_t>(numel));
    device_.upload(parameters_.data() + slot.offset + head * numel, part.data(), part.size_bytes());
    values = values.subspan(part.size());
  }
}

std::vector<float> Model::download(std::size_t slot) const {
  const TensorSlot& tensor = layout_.slots().at(slot);
  std::vector<float> values(static_cast<std::size_t>(tensor.numel));
  device_.download(values.data(), parameters_.data() + tensor.offset, values.size() * sizeof(float));
  return values;
}

void Model::upload(std::size_t slot, std::span<const float> values) {
  const TensorSlot& tensor = layout_.slots().at(slot);
  if (std::cmp_not_equal(values.size(), tensor.numel)) {
    fail("set " + tensor.name, fmt::format("it has {} values, not {}", tensor.numel, values.size()));
  }
  device_.upload(parameters_.data() + tensor.offset, values.data(), values.size_bytes());
}

}  // namespace ddp
